// Colours whose order is visible without distinguishing hues: they only get darker.
const INK = "#1b1f24", SOFT = "#55606c", IDLE = "#d3d8de", FAULT = "#a3231f";
const OVERLAY = "#0072B2", DISTANT = "#56A0D3", TREE = "#3DB2EA", TREE_EDGE = "#0A3550", MARK = "#00D0FF";
const SERIES = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A6D00", "#6B7580"];
const HEAT = ["#f7d87c", "#f9a52c", "#ec6726", "#cb4149", "#a02c60", "#71196e", "#3f0f69", "#170b3b"];
const SHADES = 32;

function mix(one, other, share) {
  const parts = [1, 3, 5].map((at) => {
    const [a, b] = [one, other].map((colour) => parseInt(colour.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * share).toString(16).padStart(2, "0");
  });
  return `#${parts.join("")}`;
}

const heatColours = Array.from({ length: SHADES }, (_, shade) => {
  const place = (shade / (SHADES - 1)) * (HEAT.length - 1);
  const low = Math.min(Math.floor(place), HEAT.length - 2);
  return mix(HEAT[low], HEAT[low + 1], place - low);
});

/** A scale from values to colours; logarithmic over wide ranges. */
function heatScale(values) {
  const some = values.filter((value) => value > 0);
  const low = some.reduce((least, value) => Math.min(least, value), Infinity);
  const high = some.reduce((most, value) => Math.max(most, value), 0);
  const isLog = high / low > 20;
  const share = (value) => {
    if (!(value > 0)) return null;
    if (high === low) return 0.35;
    const place = isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Math.min(1, Math.max(0, place));
  };
  return {
    low, high, isLog, share, isEmpty: !some.length,
    shade: (value) => Math.round(share(value) * (SHADES - 1)),
    colour: (value) => (value > 0 ? heatColours[Math.round(share(value) * (SHADES - 1))] : IDLE),
  };
}

/** Round numbers between two numbers, approximately `about` of them. */
function ticks(low, high, about) {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((times) => times * power).find((some) => some >= raw * 0.999);
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place++)
    found.push(Number((place * step).toPrecision(12)));
  return found;
}

/** Powers of ten between two numbers, with multiples of 2 and 5 if there is room. */
function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const times of [1, 2, 5]) found.push(Number((times * 10 ** power).toPrecision(6)));
  const inside = found.filter((some) => some >= low * 0.999 && some <= high * 1.001);
  return inside.length > 7 ? inside.filter((some) => /^[0.]*10*$/.test(String(some))) : inside;
}
