// Points of two numbers each, as SVG: one for each topic or host.
const MOST_POINTS = 3000, POINT = "#0072B2", CHOSEN = "#D55E00";

/** Evenly spaced items of a list, at most as many as can be drawn. */
function thinned(list, most) {
  const step = Math.ceil(list.length / most);
  return step > 1 ? list.filter((_, at) => at % step === 0) : list;
}

function axisOf(values) {
  const low = Math.min(0, ...values), high = Math.max(...values, 0);
  return { low, high: high === low ? low + 1 : high + (high - low) * 0.04 };
}

/** Points are `{ x, y, title, rows, key }`; those without a y are left out. */
function scatterChart({ label, xLabel, yLabel, points, onclick, name }) {
  const W = 420, H = 290, left = 66, right = 14, top = 12, bottom = 44;
  const svg = chart(W, H, label);
  const known = thinned(points.filter(({ x, y }) => isNumber(x) && isNumber(y)), MOST_POINTS);
  const xs = axisOf(known.map(({ x }) => x)), ys = axisOf(known.map(({ y }) => y));
  const across = (x) => left + ((x - xs.low) / (xs.high - xs.low)) * (W - left - right);
  const up = (y) => H - bottom - ((y - ys.low) / (ys.high - ys.low)) * (H - top - bottom);
  for (const mark of ticks(ys.low, ys.high, 5)) {
    svg.append(line(left, up(mark), W - right, up(mark), mark ? "grid" : "axis"));
    svg.append(text(left - 7, up(mark) + 4, "end", read(mark)));
  }
  for (const mark of ticks(xs.low, xs.high, 6)) {
    svg.append(line(across(mark), up(ys.low), across(mark), up(ys.low) + 4, "axis"));
    svg.append(text(across(mark), up(ys.low) + 18, "middle", read(mark)));
  }
  svg.append(text((left + W - right) / 2, H - 6, "middle", xLabel, "title"));
  svg.append(draw("text", { transform: `translate(12 ${(top + H - bottom) / 2}) rotate(-90)`, "text-anchor": "middle", class: "title" }, yLabel));
  for (const point of known) {
    const dot = draw("circle", { cx: across(point.x).toFixed(1), cy: up(point.y).toFixed(1), r: 4, fill: POINT, "fill-opacity": 0.55, stroke: POINT, "data-point": point.key, class: onclick ? "point" : null });
    dot.addEventListener("mousemove", (event) => tip.show(tipTable(point.title, point.rows), event.clientX, event.clientY));
    dot.addEventListener("mouseleave", tip.hide);
    if (onclick) dot.addEventListener("click", () => onclick(point.key));
    svg.append(dot);
  }
  return make("figure", { class: "scatter", "data-scatter": name }, svg);
}

/** Mark one point of a chart as selected. */
function markPoint(figure, key) {
  for (const dot of figure.querySelectorAll("circle")) {
    const isChosen = dot.dataset.point === String(key);
    dot.setAttribute("fill", isChosen ? CHOSEN : POINT);
    dot.setAttribute("stroke", isChosen ? INK : POINT);
    dot.setAttribute("r", isChosen ? 6 : 4);
    if (isChosen) dot.parentNode.append(dot);
  }
}
