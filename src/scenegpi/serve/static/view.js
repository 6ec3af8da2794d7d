// What a drawing shows of its picture: zoom and pan by wheel, two fingers, middle button, space, and keys.
const MOST = 40;

export class View {
  // `drawn()` is called after each change of what is shown; `size()` gives [width, height] of the whole in user units.
  constructor(drawing, { size, drawn }) {
    Object.assign(this, { drawing, size, drawn });
    this.region = null;
    this.fingers = new Map();
    this.space = false;
    new ResizeObserver(() => this.show()).observe(drawing);
    drawing.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) this.pan((event.deltaX || event.deltaY) * this.unit, 0);
      else this.zoom(1.0015 ** -event.deltaY, this.at(event));
    }, { passive: false });
    addEventListener("keydown", (event) => { if (event.key === " " && !event.target.closest?.("input, select, textarea, button, summary, [role=button]")) this.space = true; });
    addEventListener("keyup", (event) => { if (event.key === " ") this.space = false; });
    drawing.addEventListener("pointerdown", (event) => this.finger(event), { capture: true });
    drawing.addEventListener("pointermove", (event) => this.pinch(event), { capture: true });
    ["pointerup", "pointercancel"].forEach((kind) => addEventListener(kind, (event) => this.fingers.delete(event.pointerId)));
  }

  // User units for one pixel of the screen: what keeps its size on the screen is drawn in multiples of it.
  get unit() {
    const { width, height } = this.drawing.getBoundingClientRect();
    const [x, y, wide, tall] = this.box();
    return width && height ? Math.max(wide / width, tall / height) : 1;
  }

  get whole() { return this.region === null; }
  box() { return this.region ?? [0, 0, ...this.size()]; }

  show() {
    const [width, height] = this.size();
    if (this.region) {
      const [x, y, wide, tall] = this.region;
      this.region = [Math.max(0, Math.min(width - wide, x)), Math.max(0, Math.min(height - tall, y)), wide, tall];
    }
    this.drawing.setAttribute("viewBox", this.box().map((value) => value.toFixed(2)).join(" "));
    this.drawn();
  }

  fit() { this.region = null; this.show(); }

  zoom(factor, [x, y] = this.middle()) {
    const [width, height] = this.size();
    const [left, top, wide] = this.box();
    const next = Math.max(width / MOST, Math.min(width, wide / factor));
    if (next > width * 0.999) { this.fit(); return; }
    const scale = next / wide;
    this.region = [x - (x - left) * scale, y - (y - top) * scale, next, next * height / width];
    this.show();
  }

  pan(dx, dy) {
    if (this.whole) return;
    this.region = [this.region[0] + dx, this.region[1] + dy, this.region[2], this.region[3]];
    this.show();
  }

  middle() { const [x, y, wide, tall] = this.box(); return [x + wide / 2, y + tall / 2]; }

  at(event) {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.drawing.getScreenCTM().inverse());
    return [x, y];
  }

  finger(event) {
    if (event.pointerType !== "touch") return;
    this.fingers.set(event.pointerId, [event.clientX, event.clientY]);
  }

  // Two fingers: the points under them stay under them.
  pinch(event) {
    if (!this.fingers.has(event.pointerId)) return;
    const other = [...this.fingers].find(([id]) => id !== event.pointerId);
    const before = this.fingers.get(event.pointerId);
    const now = [event.clientX, event.clientY];
    this.fingers.set(event.pointerId, now);
    if (!other) return;
    const apart = (point) => Math.hypot(point[0] - other[1][0], point[1] - other[1][1]) || 1;
    const unit = this.unit;
    this.zoom(apart(now) / apart(before), this.at({ clientX: (now[0] + other[1][0]) / 2, clientY: (now[1] + other[1][1]) / 2 }));
    this.pan((before[0] - now[0]) * unit / 2, (before[1] - now[1]) * unit / 2);
  }

  // Keys that mean the same in every part; true where one did.
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const step = 60 * this.unit;
    const ways = { "+": () => this.zoom(1.4), "=": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4), 0: () => this.fit(), PageUp: () => this.pan(0, -4 * step), PageDown: () => this.pan(0, 4 * step) };
    if (!ways[event.key]) return false;
    ways[event.key]();
    return true;
  }
}
