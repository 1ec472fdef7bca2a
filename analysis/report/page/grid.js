// A grid over the plane that finds lines and nodes near a point among thousands.
class Grid {
  constructor(low, high, about) {
    const width = Math.max(high[0] - low[0], 1e-9), height = Math.max(high[1] - low[1], 1e-9);
    this.cell = Math.sqrt((width * height) / Math.max(1, about)) || 1;
    this.low = low;
    this.columns = Math.floor(width / this.cell) + 1;
    this.rows = Math.floor(height / this.cell) + 1;
    this.cells = new Map();
  }

  at(x, y) {
    const clamp = (value, most) => Math.min(most - 1, Math.max(0, Math.floor(value / this.cell)));
    return [clamp(x - this.low[0], this.columns), clamp(y - this.low[1], this.rows)];
  }

  put(column, row, thing) {
    const key = row * this.columns + column;
    const here = this.cells.get(key);
    if (!here) this.cells.set(key, [thing]);
    else if (here[here.length - 1] !== thing) here.push(thing);
  }

  addPoint(x, y, thing) { this.put(...this.at(x, y), thing); }

  /** Add an item to every cell that a line crosses. */
  addLine(x1, y1, x2, y2, thing) {
    const steps = Math.ceil((2 * Math.hypot(x2 - x1, y2 - y1)) / this.cell) + 1;
    for (let step = 0; step <= steps; step++) {
      const share = step / steps;
      this.put(...this.at(x1 + (x2 - x1) * share, y1 + (y2 - y1) * share), thing);
    }
  }

  /** Everything in the cells within reach of a point. */
  near(x, y, reach) {
    const [left, top] = this.at(x - reach - this.cell / 2, y - reach - this.cell / 2);
    const [right, bottom] = this.at(x + reach + this.cell / 2, y + reach + this.cell / 2);
    const found = new Set();
    for (let row = top; row <= bottom; row++)
      for (let column = left; column <= right; column++)
        for (const thing of this.cells.get(row * this.columns + column) || []) found.add(thing);
    return found;
  }
}

function distanceToLine(x, y, x1, y1, x2, y2) {
  const dx = x2 - x1, dy = y2 - y1;
  const share = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - x1 - share * dx, y - y1 - share * dy);
}
