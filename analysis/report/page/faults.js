// Faults and repairs: marks on the timeline with their names, and a table of disturbed deliveries.
const LABEL_ROW = 16, MOST_LABEL_ROWS = 4;

/** The row of each label, so that none overlap; -1 for one without room, which is shown on hover. */
function labelRows(labels, room) {
  const free = new Array(MOST_LABEL_ROWS).fill(-Infinity);
  return labels.map(({ x, words }) => {
    const width = words.length * 6.6 + 14, from = Math.max(0, Math.min(x, room - width));
    const row = free.findIndex((end) => end <= from);
    if (row >= 0) free[row] = from + width;
    return { row, from };
  });
}

/** The positions of the marks of faults, before the height of the chart is known. */
function placeFaults(moments, across, room) {
  const places = labelRows(moments.map(({ at_s, label }) => ({ x: across(at_s), words: label })), room);
  return { moments, places, height: LABEL_ROW * (1 + Math.max(-1, ...places.map(({ row }) => row))) };
}

/** A band from each fault to its recovery. */
function recoveryBands(moments, across, room, top, bottom) {
  return moments.filter((moment) => moment.recovery_s > 0).map(({ at_s, recovery_s }) => draw("rect", {
    x: across(at_s), y: top, height: bottom - top, fill: FAULT, opacity: 0.1, "data-recovering": at_s,
    width: Math.max(1.5, Math.min(room, across(at_s + recovery_s)) - across(at_s)),
  }));
}

/** A line for each time of faults, and the names above all lines. */
function faultMarks({ moments, places }, across, bottom) {
  const lines = moments.map(({ at_s, is_failure }, at) => {
    const x = across(at_s), { row } = places[at];
    const top = row < 0 ? LABEL_ROW * MOST_LABEL_ROWS : row * LABEL_ROW + 2;
    return draw("line", { x1: x, x2: x, y1: top, y2: bottom, stroke: is_failure ? FAULT : SOFT, "stroke-width": 1.2, "stroke-dasharray": is_failure ? "5 2" : "2 3" });
  });
  const names = moments.map(({ at_s, label }, at) => {
    const x = across(at_s), { row, from } = places[at];
    return row < 0 ? null : draw("text", { x: from === x ? x + 4 : from, y: row * LABEL_ROW + 12, class: "title fault", "data-fault": at_s }, label);
  });
  return [...lines, ...names.filter(Boolean)];
}

/** The disturbed deliveries and recovery time of each fault; repairs have a row, too. */
function faultsTable({ moments, moments_note: note }) {
  const failed = moments.filter((moment) => moment.is_failure);
  if (!moments.length) return null;
  const isMeasured = failed.some((moment) => moment.deliveries !== null);
  const explained = [
    ["Recovery", "Time from the fault to the last late delivery, or to the publication of the last event with a missing delivery. Later events were delivered in time."],
    ["Late", "Deliveries that took more than twice as long as the longest before the first fault."],
    ["Missing", "Deliveries expected at hosts whose agents ran during the whole run, and never made."],
    ["Of deliveries", "All deliveries that were due between this fault and the next."],
  ];
  const number = (name, moment) => make("td", { class: "num" }, moment[name] === null ? "–" : figureOf(`fault.${moment.at_s}.${name}`, moment[name]));
  const recovery = (moment) => {
    if (!moment.is_failure) return make("td", { class: "soft" }, "repair");
    if (moment.recovery_s !== null) return make("td", { class: "num" }, figureOf(`fault.${moment.at_s}.recovery_s`, moment.recovery_s), " s");
    return make("td", { class: "soft" }, moment.note || "not known");
  };
  const rows = moments.map((moment) => make("tr", { "data-moment": moment.at_s },
    make("td", { class: "num" }, `${Number(moment.at_s.toFixed(3))} s`), make("td", {}, moment.what), recovery(moment),
    ["late", "missing", "deliveries"].map((name) => number(name, moment))));
  const names = ["at_s", "what", "is_failure", "recovery_s", "late", "missing", "deliveries", "note"];
  const columns = () => Object.fromEntries(names.map((name) => [name, moments.map((moment) => moment[name])]));
  const why = isMeasured ? "" : note || "Recovery times are unknown: the run has not been analysed (tdo analyze).";
  return make("div", { class: "card faults", "data-figure": "faults" },
    make("div", { class: "card-head" }, make("h3", {}, "Faults and recovery"), downloadButton("faults", columns)),
    make("div", { class: "scroll" }, make("table", {},
      make("thead", {}, make("tr", {}, make("th", { class: "num" }, "Time"), make("th", {}, "What"), explained.map(([words, meaning]) => make("th", { class: "num" }, term(words, meaning))))),
      make("tbody", {}, rows))),
    why ? make("p", { class: "note" }, why) : null);
}
