// Topics: a table by size, one of them drawn over the network, and the load of each host.
const MOST_TOPICS = 500, SUBSCRIBER = "#0072B2", RELAY = "#D55E00";
const TOPIC_COLUMNS = [
  ["subscribers", "subscribers", "Hosts that subscribe to the topic at any time."],
  ["events", "events", "Events published on the topic."],
  ["overhead_per_delivery", "overhead", "Receptions of its events by hosts that do not subscribe to it, each copy counted, for each delivery."],
  ["path_length", "path", "Overlay hops from the publisher to a subscriber, mean over deliveries."],
  ["rdp", "RDP", "Delay from publisher to subscriber over the overlay, divided by the unicast delay, mean over deliveries."],
  ["relays", "relays", "Hosts that forwarded its events without subscribing to it."],
];

/** The map of one topic: links by crossings of its events, and the roles of hosts. */
class TopicMap extends TopologyMap {
  constructor(data, stage) {
    const none = data.links.a.map(() => 0);
    const { a, b, delay_ab, delay_ba } = data.links;
    super({ nodes: data.nodes, overlay: null, trees: [], links: { a, b, delay_ab, delay_ba, crossings_ab: none, crossings_ba: none, measures: [] } }, stage, () => {});
    this.drawn = data.topics.drawn;
    this.layers.names = data.nodes.name.length <= 400;
  }

  choose(topic) {
    const found = this.drawn[topic] || { subscribers: [], publishers: [], relays: [], relayed: [], links: [], ab: [], ba: [] };
    this.topic = topic;
    this.subscribers = new Set(found.subscribers);
    this.publishers = new Set(found.publishers);
    this.relays = new Map(found.relays.map((node, at) => [node, found.relayed[at]]));
    for (const way of ["ab", "ba"]) {
      const counts = this.links.a.map(() => 0);
      found.links.forEach((link, at) => { counts[link] = found[way][at]; });
      this.links[`crossings_${way}`] = counts;
    }
    const measure = { key: "crossings", label: "crossings by its events", short: "crossings" };
    this.links.measures = [measure];
    this.setMeasure(measure);
  }

  paintNodes(pen) {
    super.paintNodes(pen);
    if (!this.subscribers || !this.layers.hosts) return;
    const hosts = this.nodes.kind.flatMap((kind, node) => (kind === HOST ? [node] : []));
    const isPart = (node) => this.subscribers.has(node) || this.relays.has(node) || this.publishers.has(node);
    for (const node of hosts.filter((some) => !isPart(some))) this.paintHost(pen, node, "#ffffff", "#8a95a1", 0.9);
    for (const node of hosts.filter(isPart)) this.paintPart(pen, node);
  }

  paintPart(pen, node) {
    const [sx, sy] = this.toScreen(this.nodes.x[node], this.nodes.y[node]), size = this.radiusOf(node) * 1.45;
    if (this.relays.has(node)) {
      pen.beginPath();
      pen.rect(sx - size * 0.9, sy - size * 0.9, size * 1.8, size * 1.8);
      pen.fillStyle = RELAY; pen.strokeStyle = "#ffffff"; pen.lineWidth = 1;
      pen.fill(); pen.stroke();
    } else this.paintHost(pen, node, this.subscribers.has(node) ? SUBSCRIBER : "#ffffff", this.subscribers.has(node) ? "#ffffff" : INK, 1.45);
    if (!this.publishers.has(node)) return;
    pen.beginPath();
    pen.arc(sx, sy, size + 4, 0, 2 * Math.PI);
    pen.strokeStyle = INK; pen.lineWidth = 1.6;
    pen.stroke();
  }

  paintHost(pen, node, fill, stroke, times) {
    pen.beginPath();
    this.trace(pen, HOST, ...this.toScreen(this.nodes.x[node], this.nodes.y[node]), this.radiusOf(node) * times);
    pen.fillStyle = fill; pen.strokeStyle = stroke; pen.lineWidth = 1;
    pen.fill(); pen.stroke();
  }

  tellNode(node) {
    const { name, kind } = this.nodes;
    if (kind[node] !== HOST) return super.tellNode(node);
    const rows = [["subscribes", this.subscribers.has(node) ? "yes" : "no"]];
    if (this.publishers.has(node)) rows.push(["publishes", "yes"]);
    if (this.relays.has(node)) rows.push(["messages sent as a relay", read(this.relays.get(node))]);
    return tipTable(`Host ${name[node]}, topic ${this.topic}`, rows);
  }
}

function topicLegend(map) {
  const icon = (child) => draw("svg", { width: 15, height: 14, "aria-hidden": "true" }, child);
  const shapes = [
    [draw("path", { d: "M7,2 L12,11 L2,11 z", fill: SUBSCRIBER }), plural(map.subscribers.size, "subscriber")],
    [draw("rect", { x: 2.5, y: 2.5, width: 9, height: 9, fill: RELAY }), plural(map.relays.size, "relay")],
    [draw("circle", { cx: 7, cy: 7, r: 5.5, fill: "none", stroke: INK, "stroke-width": 1.6 }), plural(map.publishers.size, "publisher")],
    [draw("path", { d: "M7,3 L11,11 L3,11 z", fill: "#fff", stroke: "#8a95a1" }), "other host"],
  ];
  return [...heatLegend(map), make("div", { class: "shapes" }, shapes.map(([shape, words]) => make("span", {}, icon(shape), words)))];
}

function topicTable(rows, choose) {
  const head = make("tr", {}, make("th", { scope: "col" }, "topic"), TOPIC_COLUMNS.map(([, words, explain]) => make("th", { class: "num", scope: "col" }, term(words, explain))));
  const lines = rows.topic.slice(0, MOST_TOPICS).map((topic, at) => make("tr", { "data-topic": topic, "aria-selected": "false", onclick: () => choose(topic) },
    make("td", {}, make("button", { type: "button", "aria-label": `Draw topic ${topic}`, onclick: (event) => { event.stopPropagation(); choose(topic); } }, String(topic))),
    TOPIC_COLUMNS.map(([key]) => make("td", { class: "num", "data-of": key }, read(rows[key][at])))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, lines));
}

function topicCharts(rows, choose) {
  const kinds = [["overhead_per_delivery", "overhead per delivery"], ["path_length", "mean path length (hops)"], ["rdp", "mean RDP"]];
  return kinds.map(([key, yLabel]) => scatterChart({
    name: key, label: `Topics by subscribers and ${yLabel}`, xLabel: "subscribers of the topic", yLabel, onclick: (topic) => choose(Number(topic)),
    points: rows.topic.map((topic, at) => ({ x: rows.subscribers[at], y: rows[key][at], key: topic, title: `Topic ${topic}`, rows: [["subscribers", read(rows.subscribers[at])], ["events", read(rows.events[at])], [yLabel, read(rows[key][at])]] })),
  }));
}

function hostCharts(hosts) {
  const kinds = [["received", "messages received of own topics"], ["topics", "own topics"], ["published", "events published"]];
  return kinds.map(([key, xLabel]) => scatterChart({
    name: `hosts-${key}`, label: `Hosts by ${xLabel} and messages forwarded`, xLabel, yLabel: "messages forwarded",
    points: hosts.host.map((host, at) => ({ x: hosts[key][at], y: hosts.forwarded[at], key: host, title: `Host ${host}`, rows: [["messages forwarded", read(hosts.forwarded[at])], ["received of own topics", read(hosts.received[at])], ["received of other topics", read(hosts.unwanted[at])], ["own topics", read(hosts.topics[at])], ["events published", read(hosts.published[at])]] })),
  }));
}

function correlationWords(flat) {
  const value = (name) => (flat.find(([key]) => key === `forwarding_correlation.${name}`) || [null, null])[1];
  const part = (name, words) => {
    const [r, low, high] = ["r", "low", "high"].map((end) => value(`${name}.${end}`));
    if (!isNumber(r)) return null;
    return `with ${words} ${r.toFixed(2)}${isNumber(low) ? ` (99 % interval ${low.toFixed(2)} to ${high.toFixed(2)})` : ""}`;
  };
  const parts = [part("receiving", "messages received of own topics"), part("sending", "events published")].filter(Boolean);
  return parts.length ? `Correlation of messages forwarded: ${parts.join(", ")}.` : "Each point is a host.";
}

function figureCard(name, title, explain, columns, body) {
  return make("div", { class: "card figure", "data-figure": name },
    make("div", { class: "card-head" }, make("h3", {}, explain ? term(title, explain) : title), downloadButton(name, columns)), body);
}

function topicsSection(data) {
  const { rows, drawn, hosts, words } = data.topics;
  const stage = make("div", { class: "stage topic-stage" }), legend = make("div", { class: "legend" });
  const map = new TopicMap(data, stage);
  const title = make("strong", { class: "topic-title" });
  const picker = make("select", { "aria-label": "The topic that is drawn", "data-choose": "topic", onchange: () => choose(Number(picker.value)) },
    rows.topic.filter((topic) => drawn[topic]).map((topic) => make("option", { value: topic }, `topic ${topic}`)));
  const choose = (topic) => {
    if (!drawn[topic]) return;
    map.choose(topic);
    picker.value = String(topic);
    const at = rows.topic.indexOf(topic);
    title.textContent = `${plural(rows.events[at], "event")}, ${plural(rows.deliveries[at], "delivery", "deliveries")}, overhead ${read(rows.overhead[at])}`;
    legend.replaceChildren(...topicLegend(map));
    for (const row of table.querySelectorAll("tr[data-topic]")) row.setAttribute("aria-selected", String(Number(row.dataset.topic) === topic));
    for (const figure of charts) markPoint(figure, topic);
  };
  const table = topicTable(rows, choose), charts = topicCharts(rows, choose);
  const columns = () => Object.fromEntries(Object.entries(rows));
  const zoom = make("div", { class: "zoom" }, [["+", "Zoom in", () => map.zoom(1.6)], ["−", "Zoom out", () => map.zoom(1 / 1.6)], ["⤢", "Show the whole network", () => map.fit()]].map(([sign, label, onclick]) =>
    make("button", { class: "button", type: "button", "aria-label": label, title: label, onclick }, sign)));
  stage.append(zoom);
  const more = rows.topic.length > MOST_TOPICS ? make("p", { class: "note", style: "padding:4px 14px" }, `The ${MOST_TOPICS} largest of ${read(rows.topic.length)} topics; the CSV has all.`) : null;
  return { map, choose, first: rows.topic[0], content: [
    heading("topics", "Topics", words),
    make("div", { class: "map-grid topic-grid" },
      make("div", { class: "card map-card" }, make("div", { class: "controls" }, make("label", {}, "Draw ", picker), title), stage, legend),
      make("div", { class: "card worst" }, make("div", { class: "card-head" }, make("h3", {}, "Topics by size"), downloadButton("topics", columns)),
        make("div", { class: "scroll", tabindex: 0, "aria-label": "Topics by size" }, table, more))),
    figureCard("topic_sizes", "Cost of a topic by its size", "Each point is a topic. A click draws it on the map.", columns, make("div", { class: "scatters" }, charts)),
    figureCard("host_loads", "Forwarding load of hosts and their own interests", "Messages with events that a host sent to others, the first hop of its own events included.", () => hosts,
      [make("p", { class: "note", style: "padding:0 14px" }, correlationWords(data.flat)), make("div", { class: "scatters" }, hostCharts(hosts))]),
  ] };
}
