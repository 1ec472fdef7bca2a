// Elements, numbers for readers, and tables as CSV files.
const SVG = "http://www.w3.org/2000/svg";

function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

const make = (tag, attributes, ...children) =>
  dress(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) =>
  dress(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** Four significant digits, whole numbers in full, thousands apart. */
function read(value) {
  if (!isNumber(value)) return value === null || value === undefined ? "–" : String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-GB");
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-GB");
  if (size < 0.001) return value.toPrecision(3);
  return String(Number(value.toPrecision(4)));
}

const milliseconds = (us) => `${read(us / 1000)} ms`;
const plural = (count, one, many) => `${read(count)} ${count === 1 ? one : many || one + "s"}`;

/** Columns as CSV, in the way of RFC 4180. */
function csvOf(columns) {
  const names = Object.keys(columns);
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [names.map(cell).join(",")];
  const length = names.length ? columns[names[0]].length : 0;
  for (let row = 0; row < length; row++)
    lines.push(names.map((name) => cell(columns[name][row])).join(","));
  return lines.join("\r\n") + "\r\n";
}

function downloadButton(name, columns) {
  const save = () => {
    const link = URL.createObjectURL(new Blob([csvOf(columns())], { type: "text/csv" }));
    make("a", { href: link, download: `${name}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(link), 10000);
  };
  const label = `Download the data of this figure as ${name}.csv`;
  return make("button", { class: "button csv", type: "button", onclick: save, "aria-label": label, "data-csv": name }, "CSV");
}

// One tooltip at the pointer or at the focused element.
const tip = {
  show(content, x, y) {
    const box = byId("tip");
    box.replaceChildren(...content);
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const right = document.documentElement.clientWidth, bottom = window.innerHeight;
    const left = x + 14 + width > right - 6 ? x - 14 - width : x + 14;
    const top = y + 14 + height > bottom - 6 ? y - 14 - height : y + 14;
    box.style.left = `${Math.max(6, left)}px`;
    box.style.top = `${Math.max(6, top)}px`;
  },
  hide() { byId("tip").hidden = true; },
};

/** The content of a tooltip: a title and rows of two cells. */
function tipTable(title, rows) {
  const lines = rows.map(([name, value]) => make("tr", {}, make("td", { class: "soft" }, name), make("td", {}, value)));
  return [make("strong", {}, title), make("table", {}, make("tbody", {}, lines))];
}

/** Words with an explanation on hover and on focus. */
function term(words, explanation) {
  if (!explanation) return make("span", {}, words);
  const node = make("span", { class: "term", tabindex: 0, "aria-label": `${words}: ${explanation}`, "data-explain": explanation }, words);
  const told = () => [make("strong", {}, words), make("span", {}, explanation)];
  node.addEventListener("mousemove", (event) => tip.show(told(), event.clientX, event.clientY));
  node.addEventListener("mouseleave", tip.hide);
  node.addEventListener("focus", () => { const box = node.getBoundingClientRect(); tip.show(told(), box.left, box.bottom - 8); });
  node.addEventListener("blur", tip.hide);
  return node;
}

function heading(id, title, words) {
  return make("div", { class: "heading" }, make("h2", { id: `${id}-title` }, title), words ? make("p", {}, words) : null);
}
