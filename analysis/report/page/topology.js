// The card of the map: its controls, its legend, and the busiest links.
const MOST_WORST = 100;

function switchFor(label, isOn, isThere, why, colour, onchange) {
  const box = make("input", { type: "checkbox", role: "switch", "aria-label": label, checked: isOn && isThere, disabled: !isThere, "data-switch": label, onchange: () => onchange(box.checked) });
  const edge = colour === TREE ? `;outline:1px solid ${TREE_EDGE}` : "";
  const key = colour ? make("i", { class: "key", style: `border-color:${colour}${edge}` }) : null;
  return make("label", { class: isThere ? "" : "off", title: isThere ? null : why }, box, key, label);
}

function heatLegend(map) {
  const { heat, measure } = map, W = 210;
  if (!measure || heat.isEmpty) return [make("strong", {}, measure ? `${measure.label}: no values` : "No values for links")];
  const svg = draw("svg", { width: W, height: 30, role: "img", "aria-label": `Colours from ${read(heat.low)} to ${read(heat.high)}` });
  const bar = W - 30;
  for (let shade = 0; shade < SHADES; shade++) {
    const share = shade / (SHADES - 1), height = 3 + 9 * share;
    if (heat.high === heat.low && shade !== Math.round(0.35 * (SHADES - 1))) continue;
    svg.append(draw("rect", { x: 15 + (shade * bar) / SHADES, y: 13 - height, width: bar / SHADES + 0.4, height, fill: heatColours[shade] }));
  }
  const isWhole = map.values.every(Number.isInteger);
  const round = ticks(heat.low, heat.high, 4).filter((mark) => !isWhole || Number.isInteger(mark));
  const marks = heat.isLog ? logTicks(heat.low, heat.high) : [...new Set([heat.low, ...round])];
  let free = -Infinity;
  for (const mark of heat.high === heat.low ? [heat.low] : marks) {
    const x = 15 + heat.share(mark) * bar;
    if (x < free) continue;
    svg.append(text(x, 27, "middle", read(mark)));
    free = x + 8 + 7 * read(mark).length;
  }
  return [make("strong", {}, measure.label + (heat.isLog ? " (log scale)" : "")), svg];
}

function shapesLegend(nodes) {
  const shapes = [];
  const icon = (child) => draw("svg", { width: 14, height: 14, "aria-hidden": "true" }, child);
  const has = (kind) => nodes.kind.includes(kind);
  if (has(ROUTER)) shapes.push([draw("circle", { cx: 7, cy: 7, r: 4.5, fill: "#6b7580" }), "router"]);
  if (has(TRANSIT)) shapes.push([draw("rect", { x: 2.5, y: 2.5, width: 9, height: 9, fill: "#3a4450" }), "transit router"]);
  if (nodes.silent.some(Boolean)) shapes.push([draw("circle", { cx: 7, cy: 7, r: 4.5, fill: "#fff", stroke: "#6b7580", "stroke-width": 1.5 }), "silent router"]);
  if (has(HOST)) shapes.push([draw("path", { d: "M7,2 L12,11 L2,11 z", fill: INK }), "host"]);
  return make("div", { class: "shapes" }, shapes.map(([shape, words]) => make("span", {}, icon(shape), words)));
}

/** Every link and direction with its values, the highest first. */
function linkRows(data, measure) {
  const { links, nodes } = data, rows = [];
  links.a.forEach((_, link) => {
    for (const way of ["ab", "ba"]) {
      const [from, to] = (way === "ab" ? ["a", "b"] : ["b", "a"]).map((end) => nodes.name[links[end][link]]);
      const figures = Object.fromEntries(links.measures.map(({ key }) => [key, links[`${key}_${way}`][link]]));
      rows.push({ link, from, to, delay_us: links[`delay_${way}`][link], ...figures });
    }
  });
  const rest = links.measures.map(({ key }) => key).filter((key) => key !== measure.key);
  return rows.sort((one, other) => [measure.key, ...rest].reduce((found, key) => found || (other[key] || 0) - (one[key] || 0), 0));
}

function worstLinks(data, map, body) {
  const { measures } = data.links;
  if (!measures.length) { body.replaceChildren(make("p", { class: "empty" }, data.links.missing)); return; }
  const shown = [map.measure, ...measures.filter((measure) => measure !== map.measure)].slice(0, 3);
  const rows = linkRows(data, map.measure).filter((row) => row[map.measure.key] > 0).slice(0, MOST_WORST);
  if (!rows.length) { body.replaceChildren(make("p", { class: "empty" }, `No link has any ${map.measure.label}.`)); return; }
  const head = make("tr", {}, make("th", { scope: "col" }, "link"), shown.map((measure) => make("th", { class: "num", scope: "col" }, measure.short)));
  const lines = rows.map((row) => {
    const choose = (event) => { event.stopPropagation(); map.select(map.selected === row.link ? null : row.link); };
    const name = make("button", { type: "button", "aria-label": `Show ${row.from} to ${row.to} on the map` }, `${row.from} → ${row.to}`);
    return make("tr", { onclick: choose, "data-link": row.link, "aria-selected": String(map.selected === row.link) },
      make("td", {}, make("i", { class: "swatch", style: `background:${map.heat.colour(row[map.measure.key])}` }), name),
      shown.map((measure) => make("td", { class: "num" }, read(row[measure.key]))));
  });
  body.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, lines)));
}

function linkColumns(data, measure) {
  const rows = linkRows(data, measure || { key: "delay_us" });
  const names = ["from", "to", "delay_us", ...data.links.measures.map(({ key }) => key)];
  return Object.fromEntries(names.map((name) => [name, rows.map((row) => row[name])]));
}

function edgeColumns(data) {
  const rows = [];
  const take = (pairs, layer, version) => { for (let at = 0; at + 1 < (pairs || []).length; at += 2) rows.push([layer, version, data.nodes.name[pairs[at]], data.nodes.name[pairs[at + 1]]]); };
  if (data.overlay) { take(data.overlay.near, "overlay", ""); take(data.overlay.distant, "overlay distant", ""); }
  for (const tree of data.trees) take(tree.links, "tree", tree.version);
  return Object.fromEntries(["layer", "version", "a", "b"].map((name, at) => [name, rows.map((row) => row[at])]));
}

function topologySection(data) {
  const stage = make("div", { class: "stage" });
  const legend = make("div", { class: "legend" });
  const scroll = make("div", { class: "scroll", tabindex: 0, "aria-label": "Links by load" });
  const isBusy = data.nodes.name.length > 400;
  const { measures } = data.links;
  const marked = { link: undefined };
  const map = new TopologyMap(data, stage, () => {
    if (marked.link === map.selected) return;
    marked.link = map.selected;
    for (const row of scroll.querySelectorAll("tr[data-link]")) row.setAttribute("aria-selected", String(Number(row.dataset.link) === map.selected && map.selected !== null));
  });
  map.setTree(data.trees.length - 1);
  map.layers.tree = data.trees.length > 0 && !isBusy;
  const update = (key) => {
    map.setMeasure(measures.find((measure) => measure.key === key) || null);
    legend.replaceChildren(...heatLegend(map), shapesLegend(data.nodes));
    worstLinks(data, map, scroll);
  };
  const colours = make("select", { "aria-label": "Value shown by the colour of links", onchange: () => update(colours.value), disabled: !measures.length, "data-choose": "measure" }, measures.map((measure) => make("option", { value: measure.key }, measure.label)));
  const versions = make("select", { "aria-label": "Version of the routing tree", "data-choose": "tree", disabled: !data.trees.length, onchange: () => map.setTree(Number(versions.value)) },
    data.trees.map((tree, number) => make("option", { value: number, selected: number === data.trees.length - 1, title: tree.label }, tree.label)));
  const controls = make("div", { class: "controls" },
    make("label", {}, "Colour by ", colours),
    switchFor("Overlay", false, data.overlay !== null, "No overlay was recorded", OVERLAY, (isOn) => map.setLayer("overlay", isOn)),
    switchFor("Routing tree", map.layers.tree, data.trees.length > 0, "No routing tree was recorded", TREE, (isOn) => map.setLayer("tree", isOn)),
    data.trees.length > 1 ? versions : null,
    switchFor("Hosts", true, true, "", null, (isOn) => map.setLayer("hosts", isOn)),
    switchFor("Names", true, true, "", null, (isOn) => map.setLayer("names", isOn)));
  const zoom = make("div", { class: "zoom" }, [["+", "Zoom in", () => map.zoom(1.6)], ["−", "Zoom out", () => map.zoom(1 / 1.6)], ["⤢", "Show the whole network", () => map.fit()]].map(([sign, label, onclick]) =>
    make("button", { class: "button", type: "button", "aria-label": label, title: label, onclick }, sign)));
  stage.append(zoom);
  update(measures.length ? measures[0].key : null);
  const hasEdges = data.overlay !== null || data.trees.length > 0;
  return { map, content: [
    heading("topology", "The network", data.map_words),
    make("div", { class: "map-grid" },
      make("div", { class: "card map-card" }, controls, stage, legend),
      make("div", { class: "card worst" }, make("div", { class: "card-head" }, make("h3", {}, "Busiest links"),
        make("span", { class: "buttons" }, downloadButton("links", () => linkColumns(data, map.measure)), hasEdges ? dress(downloadButton("edges", () => edgeColumns(data)), { title: "The overlay and the routing trees" }, [" (overlay)"]) : null)), scroll)),
  ] };
}
