// The map of the network: links by load, the overlay and the routing tree above them.
const ROUTER = 0, TRANSIT = 1, HOST = 2;
const NODE_REACH = 9, LINE_REACH = 6; // pixels
const BOW = 0.13, PIECES = 8;

class TopologyMap {
  constructor(data, stage, changed) {
    this.nodes = data.nodes;
    this.links = data.links;
    this.changed = changed;
    this.layers = { overlay: false, tree: false, hosts: true, names: true };
    this.measure = null;
    this.tree = null;
    this.selected = null;
    this.hovered = null;
    this.stage = stage;
    this.base = make("canvas", { "aria-hidden": "true" });
    this.top = make("canvas", { tabindex: 0, role: "application", "aria-label": "Map of the network. Arrow keys move it, plus and minus zoom, 0 shows the whole network." });
    stage.append(this.base, this.top);
    this.measureSpace();
    this.curves = { near: this.bend(data.overlay && data.overlay.near), distant: this.bend(data.overlay && data.overlay.distant) };
    this.trees = data.trees.map((tree) => ({ ...tree, curves: this.bend(tree.links) }));
    this.indexPlane();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(stage);
    this.resize();
  }

  // Geometry

  measureSpace() {
    const { x, y } = this.nodes;
    const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
    const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
    this.low = [least(x), least(y)];
    this.high = [most(x), most(y)];
    for (const axis of [0, 1]) if (this.high[axis] - this.low[axis] < 1e-6) { this.low[axis] -= 1; this.high[axis] += 1; }
    const area = (this.high[0] - this.low[0]) * (this.high[1] - this.low[1]);
    this.gap = Math.sqrt(area / x.length);
  }

  /** Lines between hosts as flat bows, so that they do not hide the links under them. */
  bend(pairs) {
    const { x, y } = this.nodes, curves = [];
    for (let at = 0; at + 1 < (pairs || []).length; at += 2) {
      const [a, b] = [pairs[at], pairs[at + 1]];
      const dx = x[b] - x[a], dy = y[b] - y[a];
      curves.push({ a, b, cx: (x[a] + x[b]) / 2 - dy * BOW, cy: (y[a] + y[b]) / 2 + dx * BOW });
    }
    return curves;
  }

  pieces(curve) {
    const { x, y } = this.nodes, points = [];
    for (let step = 0; step <= PIECES; step++) {
      const t = step / PIECES, s = 1 - t;
      points.push([s * s * x[curve.a] + 2 * s * t * curve.cx + t * t * x[curve.b], s * s * y[curve.a] + 2 * s * t * curve.cy + t * t * y[curve.b]]);
    }
    return points;
  }

  indexPlane() {
    const { x, y } = this.nodes, { a, b } = this.links;
    this.nodeGrid = new Grid(this.low, this.high, x.length);
    x.forEach((_, node) => this.nodeGrid.addPoint(x[node], y[node], node));
    this.linkGrid = new Grid(this.low, this.high, 2 * a.length);
    a.forEach((_, link) => this.linkGrid.addLine(x[a[link]], y[a[link]], x[b[link]], y[b[link]], link));
    this.degree = new Array(x.length).fill(0);
    a.forEach((_, link) => { this.degree[a[link]]++; this.degree[b[link]]++; });
    this.neighbours = new Map();
    for (const curves of Object.values(this.curves)) for (const { a: one, b: other } of curves)
      for (const [from, to] of [[one, other], [other, one]]) this.neighbours.set(from, [...(this.neighbours.get(from) || []), to]);
    this.curveGrids = new Map();
  }

  curveGrid(curves) {
    let grid = this.curveGrids.get(curves);
    if (!grid) {
      grid = new Grid(this.low, this.high, 2 * curves.length);
      for (const curve of curves) {
        const points = this.pieces(curve);
        for (let at = 1; at < points.length; at++) grid.addLine(...points[at - 1], ...points[at], curve);
      }
      this.curveGrids.set(curves, grid);
    }
    return grid;
  }

  // The view

  resize() {
    const width = this.stage.clientWidth, height = this.stage.clientHeight;
    if (!width || !height || (width === this.width && height === this.height && this.ratio === devicePixelRatio)) return;
    const wasFitted = !this.scale || this.scale === this.fitted;
    [this.width, this.height, this.ratio] = [width, height, window.devicePixelRatio || 1];
    for (const canvas of [this.base, this.top]) { canvas.width = Math.round(width * this.ratio); canvas.height = Math.round(height * this.ratio); }
    const margin = 26;
    this.fitted = Math.min((width - 2 * margin) / (this.high[0] - this.low[0]), (height - 2 * margin) / (this.high[1] - this.low[1]));
    if (wasFitted) this.fit(); else this.redraw();
  }

  fit() {
    this.scale = this.fitted;
    this.centre = [(this.low[0] + this.high[0]) / 2, (this.low[1] + this.high[1]) / 2];
    this.redraw();
  }

  toScreen(x, y) { return [(x - this.centre[0]) * this.scale + this.width / 2, (y - this.centre[1]) * this.scale + this.height / 2]; }
  toWorld(x, y) { return [(x - this.width / 2) / this.scale + this.centre[0], (y - this.height / 2) / this.scale + this.centre[1]]; }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.toWorld(x, y);
    this.scale = Math.min(this.fitted * 60, Math.max(this.fitted, this.scale * factor));
    const after = this.toWorld(x, y);
    this.centre = [this.centre[0] + before[0] - after[0], this.centre[1] + before[1] - after[1]];
    this.keepInside();
    this.redraw();
  }

  pan(dx, dy) {
    this.centre = [this.centre[0] - dx / this.scale, this.centre[1] - dy / this.scale];
    this.keepInside();
    this.redraw();
  }

  keepInside() { this.centre = this.centre.map((value, axis) => Math.min(this.high[axis], Math.max(this.low[axis], value))); }

  /** Bring both ends of a link into view, with some of their surroundings. */
  show(link) {
    const { x, y } = this.nodes, a = this.links.a[link], b = this.links.b[link];
    const ends = [this.toScreen(x[a], y[a]), this.toScreen(x[b], y[b])];
    const isSeen = ends.every(([sx, sy]) => sx > 20 && sy > 20 && sx < this.width - 20 && sy < this.height - 20);
    const length = Math.hypot(ends[0][0] - ends[1][0], ends[0][1] - ends[1][1]);
    if (isSeen && length > 14) return;
    const wanted = 90 / Math.max(Math.hypot(x[a] - x[b], y[a] - y[b]), 1e-9);
    this.scale = Math.min(this.fitted * 14, Math.max(this.fitted, wanted));
    this.centre = [(x[a] + x[b]) / 2, (y[a] + y[b]) / 2];
  }

  // Settings

  setLayer(name, isOn) { this.layers[name] = isOn; this.hovered = null; this.redraw(); }
  setTree(number) { this.tree = this.trees[number] || null; this.redraw(); }

  setMeasure(measure) {
    this.measure = measure;
    this.values = measure ? this.links[`${measure.key}_ab`].map((value, link) => Math.max(value || 0, this.links[`${measure.key}_ba`][link] || 0)) : this.links.a.map(() => 0);
    this.heat = heatScale(this.values);
    this.order = this.values.map((_, link) => link).sort((a, b) => this.values[a] - this.values[b]);
    this.redraw();
  }

  select(link) {
    this.selected = link;
    if (link !== null) this.show(link);
    this.redraw();
  }

  // Drawing

  redraw() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => { this.isWaiting = false; this.paint(); });
  }

  paint() {
    if (!this.width || !this.heat) return;
    const pen = this.open(this.base);
    this.room = this.gap * this.scale;
    // The tree is below links with load, so that their colours stay visible.
    this.paintLinks(pen, (value) => !(value > 0));
    if (this.layers.tree && this.tree) this.paintTree(pen);
    this.paintLinks(pen, (value) => value > 0);
    if (this.layers.overlay) this.paintOverlay(pen);
    this.paintNodes(pen);
    if (this.layers.names) this.paintNames(pen);
    this.paintMarks();
    this.changed(this);
  }

  open(canvas) {
    const pen = canvas.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.lineCap = pen.lineJoin = "round";
    return pen;
  }

  isLastMile(link) { return this.nodes.kind[this.links.a[link]] === HOST; }

  widthOf(link) {
    const share = this.heat.share(this.values[link]);
    const thin = Math.min(1.6, Math.max(0.5, this.room / 42)), thick = Math.min(1.6, Math.max(0.85, this.room / 42));
    return share === null ? 0.8 * thin : 1.5 * thin + 4.2 * share * thick;
  }

  paintLinks(pen, isWanted) {
    const { x, y } = this.nodes, { a, b } = this.links;
    let colour = null, width = null;
    for (const link of this.order) {
      if (!isWanted(this.values[link]) || (!this.layers.hosts && this.isLastMile(link))) continue;
      const wantedColour = this.heat.colour(this.values[link]), wantedWidth = this.widthOf(link);
      if (wantedColour !== colour || wantedWidth !== width) {
        if (colour) pen.stroke();
        [colour, width] = [wantedColour, wantedWidth];
        pen.strokeStyle = colour;
        pen.lineWidth = width;
        pen.beginPath();
      }
      pen.moveTo(...this.toScreen(x[a[link]], y[a[link]]));
      pen.lineTo(...this.toScreen(x[b[link]], y[b[link]]));
    }
    if (colour) pen.stroke();
  }

  strokeCurves(pen, curves, colour, width, dashes, opacity) {
    const { x, y } = this.nodes;
    pen.save();
    pen.globalAlpha = opacity;
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.setLineDash(dashes);
    pen.beginPath();
    for (const { a, b, cx, cy } of curves) {
      pen.moveTo(...this.toScreen(x[a], y[a]));
      pen.quadraticCurveTo(...this.toScreen(cx, cy), ...this.toScreen(x[b], y[b]));
    }
    pen.stroke();
    pen.restore();
  }

  paintOverlay(pen) {
    const isCrowd = this.curves.near.length > 400 && this.scale < this.fitted * 3;
    const width = isCrowd ? 0.7 : 1.5;
    this.strokeCurves(pen, this.curves.distant, DISTANT, width, [6, 4], isCrowd ? 0.35 : 0.9);
    this.strokeCurves(pen, this.curves.near, OVERLAY, width, [], isCrowd ? 0.5 : 0.9);
  }

  paintTree(pen) {
    const isCrowd = this.tree.curves.length > 400 && this.scale < this.fitted * 3;
    if (isCrowd) { this.strokeCurves(pen, this.tree.curves, TREE_EDGE, 0.8, [], 0.7); return; }
    this.strokeCurves(pen, this.tree.curves, TREE_EDGE, 4.4, [], 0.55);
    this.strokeCurves(pen, this.tree.curves, TREE, 3, [], 1);
  }

  radiusOf(node) {
    const size = Math.min(6.5, Math.max(1.1, this.room * 0.13));
    return this.nodes.kind[node] === TRANSIT ? size * 1.25 : size;
  }

  paintNodes(pen) {
    const { x, y, kind, silent } = this.nodes;
    pen.globalAlpha = this.room > 16 ? 1 : 0.6; // in dense networks, links are emphasised
    for (const kindNow of [ROUTER, TRANSIT, HOST]) {
      if (kindNow === HOST && !this.layers.hosts) continue;
      pen.fillStyle = kindNow === HOST ? INK : kindNow === TRANSIT ? "#3a4450" : "#6b7580";
      pen.strokeStyle = "#ffffff";
      pen.lineWidth = this.room > 22 ? 1.2 : 0;
      pen.beginPath();
      kind.forEach((some, node) => {
        if (some !== kindNow || silent[node]) return;
        const [sx, sy] = this.toScreen(x[node], y[node]);
        if (sx < -9 || sy < -9 || sx > this.width + 9 || sy > this.height + 9) return;
        this.trace(pen, kindNow, sx, sy, this.radiusOf(node));
      });
      pen.fill();
      if (pen.lineWidth && this.room > 22) pen.stroke();
    }
    pen.globalAlpha = 1;
    this.paintSilent(pen);
    if (this.layers.tree && this.tree) this.paintCores(pen);
  }

  trace(pen, kind, x, y, size) {
    if (kind === HOST) {
      pen.moveTo(x, y - 1.15 * size); pen.lineTo(x + 1.1 * size, y + 0.8 * size); pen.lineTo(x - 1.1 * size, y + 0.8 * size); pen.closePath();
    } else if (kind === TRANSIT) pen.rect(x - size, y - size, 2 * size, 2 * size);
    else { pen.moveTo(x + size, y); pen.arc(x, y, size, 0, 2 * Math.PI); }
  }

  paintSilent(pen) {
    const { x, y, silent } = this.nodes;
    pen.strokeStyle = "#6b7580";
    pen.fillStyle = "#ffffff";
    pen.lineWidth = 1.4;
    silent.forEach((isSilent, node) => {
      if (!isSilent) return;
      pen.beginPath();
      pen.arc(...this.toScreen(x[node], y[node]), this.radiusOf(node), 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    });
  }

  paintCores(pen) {
    const { x, y } = this.nodes;
    pen.strokeStyle = TREE_EDGE;
    pen.lineWidth = 2.5;
    for (const core of this.tree.cores) {
      pen.beginPath();
      pen.arc(...this.toScreen(x[core], y[core]), this.radiusOf(core) + 4.5, 0, 2 * Math.PI);
      pen.stroke();
    }
  }

  /** Names where there is room for them, each beside its node. */
  paintNames(pen) {
    if (this.room < 30) return;
    const { x, y, name, kind } = this.nodes;
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    pen.textAlign = "center";
    pen.strokeStyle = "rgba(255,255,255,.85)";
    pen.lineWidth = 3;
    const taken = [];
    const isFree = (sx, sy, half) => taken.every(([ox, oy, other]) => Math.abs(sx - ox) > half + other || Math.abs(sy - oy) > 11);
    name.forEach((words, node) => {
      if (kind[node] === HOST && !this.layers.hosts) return;
      const [sx, sy] = this.toScreen(x[node], y[node]);
      if (sx < 0 || sy < 0 || sx > this.width || sy > this.height) return;
      const half = 3.4 * words.length, away = this.radiusOf(node) + 5;
      const at = [sy - away, sy + away + 8].find((place) => isFree(sx, place, half));
      if (at === undefined) return;
      taken.push([sx, at, half]);
      pen.fillStyle = kind[node] === HOST ? INK : SOFT;
      pen.strokeText(words, sx, at);
      pen.fillText(words, sx, at);
    });
  }

  /** The hovered and the selected item, on a separate canvas. */
  paintMarks() {
    const pen = this.open(this.top);
    if (this.selected !== null) this.markLink(pen, this.selected, true);
    const found = this.hovered;
    if (!found) return;
    if (found.what === "link") this.markLink(pen, found.link, false);
    if (found.what === "curve") this.strokeCurves(pen, [found.curve], INK, 3, [], 1);
    if (found.what === "node") this.markNode(pen, found.node);
  }

  markLink(pen, link, isChosen) {
    const { x, y } = this.nodes, a = this.links.a[link], b = this.links.b[link];
    const from = this.toScreen(x[a], y[a]), to = this.toScreen(x[b], y[b]);
    const width = this.widthOf(link);
    for (const [colour, wide] of [[INK, width + (isChosen ? 9 : 5)], [isChosen ? MARK : "#ffffff", width + (isChosen ? 6 : 2.5)], [this.heat.colour(this.values[link]), width]]) {
      pen.strokeStyle = colour;
      pen.lineWidth = wide;
      pen.beginPath();
      pen.moveTo(...from);
      pen.lineTo(...to);
      pen.stroke();
    }
    if (!isChosen) return;
    pen.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
    pen.textAlign = "center";
    pen.lineWidth = 4;
    pen.strokeStyle = "#ffffff";
    pen.fillStyle = INK;
    const words = `${this.nodes.name[a]} – ${this.nodes.name[b]}`, middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2 - 12];
    pen.strokeText(words, ...middle);
    pen.fillText(words, ...middle);
  }

  markNode(pen, node) {
    const { x, y } = this.nodes;
    const touching = (curves) => curves.filter((curve) => curve.a === node || curve.b === node);
    if (this.nodes.kind[node] === HOST) {
      this.strokeCurves(pen, touching(this.curves.near), OVERLAY, 2.2, [], 1);
      this.strokeCurves(pen, touching(this.curves.distant), DISTANT, 2.2, [6, 4], 1);
      if (this.layers.tree && this.tree) for (const [colour, width] of [[TREE_EDGE, 6.5], [TREE, 4]]) this.strokeCurves(pen, touching(this.tree.curves), colour, width, [], 1);
    }
    pen.strokeStyle = INK;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(...this.toScreen(x[node], y[node]), this.radiusOf(node) + 4, 0, 2 * Math.PI);
    pen.stroke();
  }

  // Pointer and keys

  /** The node, overlay link or link nearest to a point of the screen. */
  find(sx, sy) {
    const [wx, wy] = this.toWorld(sx, sy), { x, y, kind } = this.nodes;
    let best = null, least = Infinity;
    const take = (distance, reach, found) => { if (distance <= reach && distance < least) { least = distance; best = found; } };
    for (const node of this.nodeGrid.near(wx, wy, NODE_REACH / this.scale))
      if (this.layers.hosts || kind[node] !== HOST)
        take(Math.hypot(x[node] - wx, y[node] - wy) * this.scale, Math.max(NODE_REACH * Math.min(1, this.room / 20), 4), { what: "node", node });
    if (best) return best;
    const { a, b } = this.links;
    const shown = [...(this.layers.tree && this.tree ? [["tree", this.tree.curves]] : []), ...(this.layers.overlay ? [["overlay", this.curves.near], ["distant", this.curves.distant]] : [])];
    for (const [layer, curves] of shown)
      for (const curve of this.curveGrid(curves).near(wx, wy, LINE_REACH / this.scale)) {
        const points = this.pieces(curve);
        for (let at = 1; at < points.length; at++)
          take(distanceToLine(wx, wy, ...points[at - 1], ...points[at]) * this.scale, LINE_REACH, { what: "curve", curve, layer });
      }
    for (const link of this.linkGrid.near(wx, wy, LINE_REACH / this.scale))
      if (this.layers.hosts || !this.isLastMile(link))
        take(this.gapTo(link, wx, wy, x, y, a, b), LINE_REACH, { what: "link", link });
    return best;
  }

  /** Pixels from a link's edge as it is drawn; of two that cover a point, the busier is nearer. */
  gapTo(link, wx, wy, x, y, a, b) {
    const distance = distanceToLine(wx, wy, x[a[link]], y[a[link]], x[b[link]], y[b[link]]) * this.scale;
    return Math.max(0, distance - this.widthOf(link) / 2) - 0.01 * (this.heat.share(this.values[link]) || 0);
  }

  hover(event) {
    const box = this.top.getBoundingClientRect();
    const found = this.find(event.clientX - box.left, event.clientY - box.top);
    const isSame = JSON.stringify(found) === JSON.stringify(this.hovered);
    this.hovered = found;
    if (!isSame) this.paintMarks();
    this.top.style.cursor = found ? "pointer" : "grab";
    if (found) tip.show(this.tell(found), event.clientX, event.clientY); else tip.hide();
  }

  leave() { this.hovered = null; tip.hide(); this.paintMarks(); }

  listen() {
    const top = this.top;
    let grip = null;
    top.addEventListener("pointerdown", (event) => { grip = { x: event.clientX, y: event.clientY, moved: 0 }; top.setPointerCapture(event.pointerId); });
    top.addEventListener("pointermove", (event) => {
      if (!grip) { this.hover(event); return; }
      const [dx, dy] = [event.clientX - grip.x, event.clientY - grip.y];
      grip = { x: event.clientX, y: event.clientY, moved: grip.moved + Math.abs(dx) + Math.abs(dy) };
      top.style.cursor = "grabbing";
      tip.hide();
      this.pan(dx, dy);
    });
    top.addEventListener("pointerup", (event) => {
      const wasClick = grip && grip.moved < 4;
      grip = null;
      if (wasClick) { this.hover(event); this.select(this.hovered && this.hovered.what === "link" ? this.hovered.link : null); }
    });
    top.addEventListener("pointercancel", () => { grip = null; });
    top.addEventListener("pointerleave", () => { if (!grip) this.leave(); });
    top.addEventListener("wheel", (event) => {
      if (event.deltaY > 0 && this.scale <= this.fitted * 1.0001) return; // let the page scroll on
      event.preventDefault();
      const box = top.getBoundingClientRect();
      const lines = event.deltaMode === 1 ? 30 : 1;
      this.zoom(Math.exp(-Math.max(-200, Math.min(200, event.deltaY * lines)) / 350), event.clientX - box.left, event.clientY - box.top);
      this.hover(event);
    }, { passive: false });
    top.addEventListener("dblclick", (event) => { const box = top.getBoundingClientRect(); this.zoom(2, event.clientX - box.left, event.clientY - box.top); });
    top.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
      if (moves[event.key]) this.pan(...moves[event.key]);
      else if (event.key === "+" || event.key === "=") this.zoom(1.5);
      else if (event.key === "-") this.zoom(1 / 1.5);
      else if (event.key === "0") this.fit();
      else if (event.key === "Escape") this.select(null);
      else return;
      event.preventDefault();
    });
  }

  // Words

  tell(found) {
    if (found.what === "node") return this.tellNode(found.node);
    if (found.what === "link") return this.tellLink(found.link);
    const { name } = this.nodes, { a, b } = found.curve;
    const words = { tree: "routing tree", overlay: "overlay link", distant: "overlay link to a distant peer" }[found.layer];
    return tipTable(`${name[a]} – ${name[b]}`, [[words, found.layer === "tree" ? `version ${this.tree.version}` : ""]]);
  }

  tellNode(node) {
    const { name, address, kind, silent, label } = this.nodes;
    const rows = [["address", address[node]], ["links", read(this.degree[node])]];
    if (label[node]) rows.push(["label", label[node]]);
    if (silent[node]) rows.push(["probes", "never answers"]);
    if (kind[node] === HOST) rows.push(["overlay neighbours", read((this.neighbours.get(node) || []).length)]);
    if (kind[node] === HOST && this.tree) {
      rows.push([`links in tree ${this.tree.version}`, read(this.tree.curves.filter(({ a, b }) => a === node || b === node).length)]);
      if (this.tree.cores.includes(node)) rows.push(["in the tree", node === this.tree.root ? "root core" : "core"]);
    }
    return tipTable(`${["Router", "Transit router", "Host"][kind[node]]} ${name[node]}`, rows);
  }

  tellLink(link) {
    const { name } = this.nodes, { a, b, measures } = this.links;
    const [one, other] = [name[a[link]], name[b[link]]];
    const both = (ab, ba, words) => (ab === ba ? words(ab) : `${words(ab)} → / ← ${words(ba)}`);
    const rows = [["delay", both(this.links.delay_ab[link], this.links.delay_ba[link], milliseconds)]];
    for (const { key, label } of measures)
      rows.push([label, both(this.links[`${key}_ab`][link], this.links[`${key}_ba`][link], read)]);
    return tipTable(`${one} – ${other}`, rows);
  }

  /** The visible items, for tests and scripts. */
  state() {
    const [a, b] = this.hovered && this.hovered.what === "link" ? [this.links.a, this.links.b].map((ends) => this.nodes.name[ends[this.hovered.link]]) : [];
    return {
      layers: { ...this.layers }, measure: this.measure && this.measure.key, tree: this.tree && this.tree.version,
      zoom: this.scale / this.fitted, centre: [...this.centre], hovered: a ? `${a}-${b}` : this.hovered && this.hovered.what === "node" ? this.nodes.name[this.hovered.node] : null,
      selected: this.selected === null ? null : `${this.nodes.name[this.links.a[this.selected]]}-${this.nodes.name[this.links.b[this.selected]]}`,
    };
  }
}
