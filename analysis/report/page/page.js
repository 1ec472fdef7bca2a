// The page: every section from the data in it.
const SIGNS = { valid: "✓", degraded: "▲", invalid: "✕", unknown: "?" };

function pageHeader(data) {
  const { verdict } = data;
  const reasons = verdict.reasons.length ? make("ul", {}, verdict.reasons.map((reason) => make("li", {}, reason))) : make("p", {}, verdict.words);
  const places = [["topology", "Network"], ...(data.topics ? [["topics", "Topics"]] : []), ["distributions", "Distributions"], ["timeline", "Timeline"], ["metrics", "All metrics"], ["setup", "What was run"]];
  byId("top").append(
    make("div", {}, make("p", { class: "kicker" }, "TDO testbed · report of a run"), make("h1", {}, data.title), make("p", { class: "subtitle" }, data.subtitle)),
    make("div", { class: `verdict ${verdict.verdict}`, "data-verdict": verdict.verdict }, make("strong", {}, `${SIGNS[verdict.verdict] || "?"} ${verdict.title}`), reasons),
    make("nav", { "aria-label": "Sections" }, places.map(([id, words]) => make("a", { href: `#${id}` }, words))));
}

function missingSection(data) {
  if (!data.missing.length) return;
  byId("missing").hidden = false;
  byId("missing").append(make("div", { class: "notice" }, make("strong", {}, "Missing parts"), make("ul", {}, data.missing.map(({ what, why }) => make("li", {}, make("b", {}, what), `: ${why}`)))));
}

const FIRST_PARTS = ["ok", "published", "expected", "found", "delivered", "mean", "p50", "p90", "p99", "max", "sent", "total", "precision", "recall"];

/** The parts of a metric, the usual ones first. */
function inOrder(value) {
  const place = (key) => (FIRST_PARTS.indexOf(key) + FIRST_PARTS.length + 1) % (FIRST_PARTS.length + 1);
  return Object.entries(value).sort(([one], [other]) => place(one) - place(other));
}

/** A number of metrics.json; a share is in percent, and seconds have their unit where the metric has another one. */
function figureOf(name, value) {
  const number = () => data.shares.includes(name) ? `${read(100 * value)} %` : data.seconds.includes(name) ? `${read(value)} s` : read(value);
  const words = value === true ? "yes" : value === false ? "no" : isNumber(value) ? number() : read(value);
  return make("data", { value: String(value), "data-metric": name, title: isNumber(value) && !Number.isInteger(value) ? String(value) : null }, words);
}

function headlineTiles(data) {
  byId("headlines").append(...data.headlines.map(({ name, label, explain, value, suffix, detail }) =>
    make("div", { class: "card tile" }, make("div", { class: "name" }, term(label, explain)), make("div", { class: "value" }, figureOf(name, value), suffix ? make("small", {}, suffix) : null), make("div", { class: "detail" }, detail))));
}

/** The words for a part of a metric. */
const partWords = (name, key) => data.part_words[`${name}.${key}`] || key.replace(/_us$/, " (µs)").replaceAll("_", " ");

const isPlain = (value) => value === null || typeof value !== "object";

/** A number, or the parts of a metric with their names; those of a list are numbered from 1. */
function valueOf(name, value) {
  if (value === null || value === undefined) return make("span", { class: "none", "data-null": name }, "not available");
  if (typeof value !== "object") return figureOf(name, value);
  const parts = inOrder(value).filter(([, part]) => isPlain(part));
  const groups = inOrder(value).filter(([, part]) => !isPlain(part));
  return make("div", {},
    make("div", { class: "values" }, parts.map(([key, part]) => make("span", { class: "part" }, make("small", {}, partWords(name, key)), part === null ? make("span", { "data-null": `${name}.${key}` }, "–") : figureOf(`${name}.${key}`, part)))),
    groups.map(([key, part]) => Array.isArray(part) && part.every(isPlain) ? make("div", { class: "note" }, `${key}: ${part.join(", ")}`) : make("details", {}, make("summary", { class: "note" }, partWords(name, key)), valueOf(`${name}.${key}`, Array.isArray(part) ? Object.fromEntries(part.map((one, at) => [at + 1, one])) : part))));
}

/** A row for each metric; missing metrics with the same reason share a row. */
function metricRows(rows) {
  const isNull = (row) => row.value === null || row.value === undefined;
  const reasons = new Map();
  for (const row of rows.filter(isNull)) reasons.set(row.note, [...(reasons.get(row.note) || []), row]);
  const shared = [...reasons].filter(([, some]) => some.length > 1);
  const alone = rows.filter((row) => !shared.some(([, some]) => some.includes(row)));
  return [
    ...alone.map(({ name, label, explain, unit, value, note }) => make("tr", { "data-row": name },
      make("td", {}, term(label, explain), unit ? make("div", { class: "note" }, unit) : null), make("td", {}, valueOf(name, value), note ? make("div", { class: "note" }, note) : null))),
    ...shared.map(([note, some]) => make("tr", {}, make("td", { colspan: 2, style: "text-align:left" },
      make("span", { class: "none" }, "Not available: "), some.map(({ name, label, explain }, at) => [at ? ", " : "", make("span", { "data-null": name }, term(label, explain))]).flat(),
      note ? make("div", { class: "note" }, note) : null))),
  ];
}

function metricsSection(data) {
  const card = (group) => make("div", { class: "card" }, make("div", { class: "card-head" }, make("h3", {}, group.title)),
    make("table", {}, make("tbody", {}, metricRows(group.rows))));
  const columns = () => ({ metric: data.flat.map(([name]) => name), value: data.flat.map(([, value]) => value), note: data.flat.map(([, , note]) => note) });
  byId("metrics").append(make("div", { class: "heading" }, make("h2", { id: "metrics-title" }, "All metrics"), make("p", {}, data.metrics_words), data.flat.length ? downloadButton("metrics", columns) : null),
    data.metrics.length ? make("div", { class: "metrics" }, ["left", "right"].map((side) => make("div", { style: "display:grid;gap:14px" }, data.metrics.filter((group) => group.side === side).map(card)))) : make("div", { class: "card" }, make("p", { class: "empty" }, "No metrics: run tdo analyze on this run.")));
}

function setupSection(data) {
  const facts = data.facts.flatMap(([name, value, isCode]) => [make("dt", {}, name), make("dd", { class: isCode ? "mono" : null }, value)]);
  const checks = data.verdict.figures.length ? [make("div", { class: "card" }, make("div", { class: "card-head" }, make("h3", {}, "Measurements of the verdict")), make("dl", { class: "facts" }, data.verdict.figures.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, read(value))])))] : [];
  byId("setup").append(heading("setup", "What was run", data.setup_words), make("div", { class: "setup" },
    make("div", { style: "display:grid;gap:14px" }, make("div", { class: "card" }, make("dl", { class: "facts" }, facts)), checks),
    make("div", { class: "card" }, make("div", { class: "card-head" }, make("h3", {}, "The experiment as given")), make("pre", { tabindex: 0, "aria-label": "Experiment file" }, data.experiment))));
}

const data = JSON.parse(byId("data").textContent);
pageHeader(data);
missingSection(data);
headlineTiles(data);
let map = null;
if (data.nodes) {
  const section = topologySection(data);
  map = section.map;
  byId("topology").append(...section.content);
} else byId("topology").append(heading("topology", "The network"), make("div", { class: "card" }, make("p", { class: "empty" }, data.map_words)));
let topics = null;
if (data.topics) {
  const section = topicsSection(data);
  byId("topics").hidden = false;
  byId("topics").append(...section.content);
  section.choose(section.first);
  topics = section.map;
}
byId("distributions").append(heading("distributions", "Distributions", "The share of values that are at most x. A curve further to the left is better."), make("div", { class: "pair" }, data.cdfs.map(cdfFigure)));
byId("timeline").append(heading("timeline", "Timeline", data.timeline.words), ...[timelineFigure(data.timeline), faultsTable(data.timeline)].filter(Boolean));
metricsSection(data);
setupSection(data);
document.querySelector("footer").append(make("p", {}, `${data.path} · written by tdo ${data.version}. This file loads nothing from the network.`));
window.addEventListener("beforeprint", () => { for (const some of [map, topics]) if (some) some.paint(); });
window.report = { data, map, topics };
