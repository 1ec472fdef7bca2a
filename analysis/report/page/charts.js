// Cumulative distributions and the timeline, as SVG that prints well.
function chart(width, height, label) {
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, "font-size": 12 });
}

const line = (x1, y1, x2, y2, name) => draw("line", { x1, y1, x2, y2, class: name });
const text = (x, y, anchor, words, name) => draw("text", { x, y, "text-anchor": anchor, class: name }, words);

/** The index of the last of sorted numbers that is not above a value. */
function lastAtMost(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1; else high = middle;
  }
  return low - 1;
}

function cdfAxis(figure) {
  const all = figure.series.flatMap((series) => series.x);
  let low = Math.min(...all), high = Math.max(...all);
  // With a long tail, a linear axis would hide all other values.
  const isLog = low > 0 && high / low > 30;
  if (!isLog && figure.from !== null) low = Math.min(low, figure.from);
  if (high === low) { low -= isLog ? 0 : 0.5; high += 0.5; }
  const place = isLog ? (x) => Math.log(x / low) / Math.log(high / low) : (x) => (x - low) / (high - low);
  const back = isLog ? (share) => low * (high / low) ** share : (share) => low + share * (high - low);
  const marks = isLog ? logTicks(low, high) : ticks(low, high, 6);
  return { place, back, marks, isLog };
}

function cdfChart(figure) {
  const W = 640, H = 330, left = 46, right = 16, top = 12, bottom = 44;
  const svg = chart(W, H, `${figure.title}: cumulative distribution`);
  const axis = cdfAxis(figure);
  const across = (x) => left + axis.place(x) * (W - left - right);
  const up = (share) => H - bottom - share * (H - top - bottom);
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(line(left, up(share), W - right, up(share), share ? "grid" : "axis"));
    svg.append(text(left - 7, up(share) + 4, "end", share.toFixed(2).replace(/0$/, "")));
  }
  for (const mark of axis.marks) {
    svg.append(line(across(mark), up(0), across(mark), up(0) + 4, "axis"));
    svg.append(text(across(mark), up(0) + 18, "middle", read(mark)));
  }
  svg.append(text((left + W - right) / 2, H - 6, "middle", figure.x_label + (axis.isLog ? " (log scale)" : ""), "title"));
  figure.series.forEach((series, number) => {
    let path = `M${across(series.x[0])},${up(0)}`;
    series.x.forEach((x, at) => { path += `H${across(x).toFixed(1)}V${up(series.y[at]).toFixed(1)}`; });
    svg.append(draw("path", { d: `${path}H${W - right}`, fill: "none", stroke: SERIES[number], "stroke-width": 2.2, "stroke-linejoin": "round", "stroke-dasharray": ["", "7 3", "2 3", "9 3 2 3"][number % 4] || null }));
  });
  const cross = line(0, up(1), 0, up(0), "axis");
  cross.setAttribute("visibility", "hidden");
  const cover = draw("rect", { x: left, y: top, width: W - left - right, height: H - top - bottom, fill: "transparent" });
  cover.addEventListener("mousemove", (event) => {
    const box = cover.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    const value = axis.back(share);
    cross.setAttribute("visibility", "visible");
    cross.setAttribute("x1", across(value)); cross.setAttribute("x2", across(value));
    const rows = figure.series.map((series) => {
      const at = lastAtMost(series.x, value);
      return [series.label, `${read(100 * (at < 0 ? 0 : series.y[at]))} %`];
    });
    tip.show(tipTable(`${read(value)} or less`, rows), event.clientX, event.clientY);
  });
  cover.addEventListener("mouseleave", () => { tip.hide(); cross.setAttribute("visibility", "hidden"); });
  svg.append(cross, cover);
  return svg;
}

function cdfFigure(figure) {
  const keys = figure.series.map((series, number) => make("span", {},
    make("i", { class: "key", style: `border-color:${SERIES[number]};border-top-style:${["solid", "dashed", "dotted", "dashed"][number % 4]}` }),
    `${series.label} (${series.counted})`));
  const columns = () => ({
    series: figure.series.flatMap((series) => series.x.map(() => series.label)),
    [figure.column]: figure.series.flatMap((series) => series.x),
    share: figure.series.flatMap((series) => series.y),
  });
  const body = figure.series.length
    ? [make("div", { class: "keys" }, keys), make("div", { class: "plot" }, cdfChart(figure))]
    : [make("p", { class: "empty" }, figure.missing)];
  const button = figure.series.length ? downloadButton(figure.file, columns) : null;
  return make("div", { class: "card figure", "data-figure": figure.file },
    make("div", { class: "card-head" }, make("h3", {}, term(figure.title, figure.explain)), button), body);
}

/** The columns of the timeline in bins wide enough to see. */
function binned(timeline, most) {
  const length = timeline.seconds.length;
  const width = Math.max(1, Math.ceil(length / most));
  const count = Math.ceil(length / width);
  const sum = (values) => {
    const sums = new Array(count).fill(0);
    values.forEach((value, at) => { sums[Math.floor(at / width)] += value; });
    return sums;
  };
  const take = (series) => series.map((some) => ({ ...some, sums: sum(some.counts) }));
  return { width, count, events: take(timeline.events), traffic: take(timeline.traffic) };
}

function timelineChart(timeline) {
  const W = 1300, left = 58, right = 16, gap = 34;
  const hasEvents = timeline.events.length > 0, hasTraffic = timeline.traffic.length > 0;
  const heights = { events: hasEvents ? 130 : 0, traffic: hasTraffic ? 190 : 0 };
  const bins = binned(timeline, 320);
  const start = timeline.seconds[0], end = start + bins.count * bins.width;
  const across = (second) => left + ((second - start) / (end - start)) * (W - left - right);
  const step = across(start + bins.width) - left;
  const faults = placeFaults(timeline.moments.filter(({ at_s }) => at_s >= start && at_s <= end), across, W);
  const top = 24 + faults.height;
  const bottom = top + heights.events + (hasEvents && hasTraffic ? gap : 0) + heights.traffic;
  const svg = chart(W, bottom + 42, "Events, deliveries, faults and traffic by second");
  svg.append(...recoveryBands(faults.moments, across, W - right, top, bottom));

  function frame(from, height, most, title) {
    const up = (value) => from + height - (value / (most || 1)) * height;
    for (const mark of ticks(0, most || 1, 4).filter((some) => Number.isInteger(some) || most < 4)) {
      svg.append(line(left, up(mark), W - right, up(mark), mark ? "grid" : "axis"));
      svg.append(text(left - 7, up(mark) + 4, "end", read(mark)));
    }
    svg.append(text(left, from - 6, "start", title, "title"));
    return up;
  }
  const each = bins.width === 1 ? "a second" : `every ${bins.width} s`;
  if (hasEvents) {
    const most = Math.max(...bins.events.flatMap((series) => series.sums));
    const up = frame(top, heights.events, most, `Events ${each}`);
    bins.events.forEach((series, number) => {
      let path = "";
      series.sums.forEach((sum, at) => { path += `${at ? "H" : "M"}${(left + at * step).toFixed(1)}${at ? "V" : ","}${up(sum).toFixed(1)}`; });
      svg.append(draw("path", { d: `${path}H${left + bins.count * step}`, fill: "none", stroke: SERIES[number], "stroke-width": 2, "stroke-dasharray": ["", "6 3", "2 3"][number % 3] || null }));
    });
  }
  if (hasTraffic) {
    const sums = Array.from({ length: bins.count }, (_, at) => bins.traffic.reduce((sum, series) => sum + series.sums[at], 0));
    const from = bottom - heights.traffic;
    const up = frame(from, heights.traffic, Math.max(...sums), `${timeline.traffic_title} ${each}`);
    const under = new Array(bins.count).fill(0);
    bins.traffic.forEach((series, number) => {
      let path = "";
      series.sums.forEach((sum, at) => {
        if (!sum) return;
        const low = up(under[at]), high = up(under[at] + sum);
        const width = Math.max(0.6, step - (step > 4 ? 1 : 0));
        path += `M${(left + at * step).toFixed(1)},${low.toFixed(1)}h${width.toFixed(1)}V${high.toFixed(1)}h${(-width).toFixed(1)}z`;
        under[at] += sum;
      });
      svg.append(draw("path", { d: path, fill: SERIES[number % SERIES.length], "data-kind": series.label }));
    });
  }
  for (const mark of ticks(start, end, 12)) {
    svg.append(line(across(mark), bottom, across(mark), bottom + 4, "axis"));
    svg.append(text(across(mark), bottom + 18, "middle", read(mark)));
  }
  svg.append(text((left + W - right) / 2, bottom + 37, "middle", "seconds since the start", "title"));
  svg.append(...faultMarks(faults, across, bottom));
  const band = draw("rect", { y: top, height: bottom - top, width: step, fill: INK, opacity: 0.08, visibility: "hidden" });
  const cover = draw("rect", { x: left, y: top, width: W - left - right, height: bottom - top, fill: "transparent" });
  cover.addEventListener("mousemove", (event) => {
    const box = cover.getBoundingClientRect();
    const at = Math.min(bins.count - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * bins.count)));
    band.setAttribute("x", left + at * step);
    band.setAttribute("visibility", "visible");
    const from = start + at * bins.width, until = from + bins.width;
    const rows = [...bins.events, ...[...bins.traffic].reverse()].filter((series) => series.sums[at]).map((series) => [series.label, read(series.sums[at])]);
    for (const fault of timeline.moments) if (fault.at_s >= from && fault.at_s < until) rows.push([`${Number(fault.at_s.toFixed(3))} s`, fault.label]);
    tip.show(tipTable(bins.width === 1 ? `Second ${from}` : `Seconds ${from} to ${until}`, rows), event.clientX, event.clientY);
  });
  cover.addEventListener("mouseleave", () => { tip.hide(); band.setAttribute("visibility", "hidden"); });
  svg.append(band, cover);
  return svg;
}

function timelineFigure(timeline) {
  const has = timeline.events.length || timeline.traffic.length;
  if (!has) return make("div", { class: "card figure" }, make("p", { class: "empty" }, timeline.missing));
  const lines = timeline.events.map((series, number) => make("span", {}, make("i", { class: "key", style: `border-color:${SERIES[number]};border-top-style:${["solid", "dashed", "dotted"][number % 3]}` }), series.label));
  const boxes = [...timeline.traffic.entries()].reverse().map(([number, series]) => make("span", {}, make("i", { class: "swatch", style: `background:${SERIES[number % SERIES.length]};margin:0` }), series.label));
  if (timeline.moments.some((moment) => moment.recovery_s > 0)) boxes.push(make("span", {}, make("i", { class: "swatch", style: `background:${FAULT};opacity:.2;margin:0` }), "recovering from a fault"));
  const columns = () => Object.fromEntries([
    ["second", timeline.seconds],
    ...timeline.events.map((series) => [series.label, series.counts]),
    ...timeline.all_traffic.map((series) => [series.label, series.counts]),
    ["faults", timeline.seconds.map((second) => timeline.faults.filter((fault) => Math.floor(fault.at_s) === second).map((fault) => `${fault.action} ${fault.target}`).join("; "))],
  ]);
  return make("div", { class: "card figure", "data-figure": "timeline" },
    make("div", { class: "card-head" }, make("h3", {}, "By second"), downloadButton("timeline", columns)),
    make("div", { class: "keys" }, lines, boxes),
    make("div", { class: "plot" }, timelineChart(timeline)),
    timeline.missing ? make("p", { class: "note", style: "padding:0 14px" }, timeline.missing) : null);
}
