// Boxes on a photo that can be drawn, moved, resized, named and deleted, by pointer and by keyboard.
// The parts have the classes of the report's drawing, so that gallery.wire and its style sheet serve here, too.
import { el, numbered, svg } from "./page.js";

const SIDE = 600;
const LEAST = 6;
const CORNERS = { nw: [0, 1], ne: [2, 1], sw: [0, 3], se: [2, 3] };

export class BoxEditor {
  // `changed(kind)` is called after a person's change; `chosen(k)` when a box is chosen (or none: -1).
  constructor({ editable = true, letters = false, changed = () => {}, chosen = () => {}, names = [] } = {}) {
    Object.assign(this, { editable, letters, changed, onChosen: chosen });
    this.boxes = [];
    this.choice = -1;
    this.image = { width: 4, height: 3, url: null };
    this.drawing = svg("svg", { role: "group", "aria-label": "Boxes on the photo" });
    this.figure = el("figure", { class: `photo${editable ? " editable" : ""}${letters ? " letters" : ""}` }, this.drawing);
    this.list = el("datalist", { id: `names-${Math.random().toString(36).slice(2)}` }, ...names.map((name) => el("option", { value: name })));
    this.input = el("input", { type: "text", list: this.list.id, "aria-label": "Name of the chosen box", placeholder: "let the model name it", maxlength: 100 });
    this.remove = el("button", { type: "button", class: "button" }, "Delete box");
    this.add = el("button", { type: "button", class: "button" }, "Add box");
    this.hint = el("span", { class: "hint" }, `Drag on the photo to draw. On a box: ${letters ? "F2" : "e"} names, Delete removes, Shift or Alt with arrows move or size.`);
    this.tools = el("div", { class: "tools", hidden: !editable }, this.add, this.input, this.remove, this.hint, this.list);
    if (editable) this.listen();
    this.choose(-1, false);
  }

  setNames(names) { this.list.replaceChildren(...names.map((name) => el("option", { value: name }))); }

  show(image, boxes) {
    this.image = image;
    this.boxes = boxes;
    this.choice = Math.min(this.choice, boxes.length - 1);
    this.draw();
  }

  get scale() { return SIDE / this.image.width; }
  get height() { return Math.max(this.image.height * this.scale, 60); }

  draw() {
    const focused = this.drawing.contains(document.activeElement) ? document.activeElement.dataset.box : undefined;
    this.drawing.setAttribute("viewBox", `0 0 ${SIDE} ${this.height.toFixed(1)}`);
    this.figure.classList.toggle("empty", !this.image.url);
    const back = this.image.url
      ? svg("image", { href: this.image.url, x: 0, y: 0, width: SIDE, height: this.height, preserveAspectRatio: "none" })
      : svg("rect", { class: "blank", x: 0, y: 0, width: SIDE, height: this.height });
    const order = this.boxes.map((_, k) => k).sort((a, b) => this.area(b) - this.area(a));
    const parts = order.map((k) => this.boxPart(k));
    const tags = order.map((k) => this.tagPart(k));
    this.drawing.replaceChildren(back, ...parts, svg("g", { class: "rays" }), ...tags, this.handles());
    const taken = [];
    tags.forEach((tag) => this.place(tag, taken));
    if (this.letters) gallery.roving(this.boxes.map((_, k) => this.part(k)));  // elsewhere gallery.wire does it
    if (focused !== undefined) this.part(Number(focused))?.focus();
  }

  area(k) { const [x1, y1, x2, y2] = this.boxes[k].box; return (x2 - x1) * (y2 - y1); }
  part(k) { return this.drawing.querySelector(`.box[data-box="${k}"]`); }
  label(k) {
    if (this.letters) return `${letterOf(k)} ${this.boxes[k].label || "?"}`;
    return numbered(this.boxes.map(({ label }) => label || "?"))[k];
  }

  frame(k) {
    const [x1, y1, x2, y2] = this.boxes[k].box.map((value) => value * this.scale);
    return { x: x1, y: y1, width: Math.max(x2 - x1, 1), height: Math.max(y2 - y1, 1) };
  }

  boxPart(k) {
    const frame = this.frame(k);
    const kind = `box${k === this.choice ? " chosen" : ""}${k === this.subject ? " subject" : ""}`;
    return svg("g", { class: kind, "data-box": k, role: "button", tabindex: -1, "aria-label": `box ${this.label(k)}` },
      svg("rect", { class: "heat", ...frame }), svg("rect", { class: "halo", ...frame }),
      svg("rect", { class: "line", stroke: this.boxes[k].colour || "#0072B2", ...frame }),
      svg("text", { class: "share", x: frame.x + frame.width / 2, y: frame.y + frame.height / 2 + 6, "text-anchor": "middle" }));
  }

  tagPart(k) {
    const colour = this.boxes[k].colour || "#0072B2";
    const text = svg("text", { "font-size": this.boxes.length > 14 ? 11 : 13, fill: inkOn(colour) });
    text.textContent = this.label(k);
    return svg("g", { class: "tag", "data-box": k }, svg("rect", { rx: 2, fill: colour }), text);
  }

  // Above its box, or where there is room: names that lie on each other can't be read.
  place(tag, taken) {
    const frame = this.frame(Number(tag.dataset.box));
    const [rect, text] = tag.children;
    const wide = text.getComputedTextLength() + 8;
    const tall = Number(text.getAttribute("font-size")) + 5;
    const left = Math.max(0, Math.min(frame.x, SIDE - wide));
    const right = Math.max(0, Math.min(frame.x + frame.width - wide, SIDE - wide));
    const heights = [frame.y - tall, frame.y, frame.y + frame.height, frame.y + frame.height - tall, frame.y + tall, frame.y + 2 * tall];
    const free = ([x, y]) => y >= 0 && y + tall <= this.height && !taken.some((t) => x < t.x + t.wide && t.x < x + wide && y < t.y + t.tall && t.y < y + tall);
    const [x, y] = heights.flatMap((at) => [[left, at], [right, at]]).find(free) ?? [left, Math.max(0, frame.y - tall)];
    taken.push({ x, y, wide, tall });
    Object.entries({ x, y, width: wide, height: tall }).forEach(([key, value]) => rect.setAttribute(key, value));
    text.setAttribute("x", x + 4);
    text.setAttribute("y", y + tall * 0.76);
  }

  handles() {
    const group = svg("g", { class: "handles" });
    if (!this.editable || this.choice < 0) return group;
    const [x1, y1, x2, y2] = this.boxes[this.choice].box.map((value) => value * this.scale);
    Object.entries({ nw: [x1, y1], ne: [x2, y1], sw: [x1, y2], se: [x2, y2] }).forEach(([corner, [x, y]]) =>
      group.append(svg("rect", { class: `handle ${corner}`, "data-corner": corner, x: x - 5, y: y - 5, width: 10, height: 10, rx: 2 })));
    return group;
  }

  choose(k, tell = true) {
    this.choice = k;
    this.input.hidden = this.remove.hidden = k < 0;
    this.hint.hidden = k >= 0;
    if (k >= 0) this.input.value = this.boxes[k].typed ? this.boxes[k].label : "";
    if (k >= 0) this.input.placeholder = this.boxes[k].typed ? "" : this.boxes[k].label || "let the model name it";
    if (this.drawing.childElementCount) {
      this.drawing.querySelectorAll(".box").forEach((part) => part.classList.toggle("chosen", Number(part.dataset.box) === k));
      this.drawing.querySelector(".handles").replaceWith(this.handles());
    }
    if (tell) this.onChosen(k);
  }

  point(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.drawing.getScreenCTM().inverse());
    const clip = (value, most) => Math.max(0, Math.min(most, value));
    return [clip(at.x / this.scale, this.image.width), clip(at.y / this.scale, this.image.height)];
  }

  listen() {
    this.drawing.addEventListener("pointerdown", (event) => this.press(event));
    this.drawing.addEventListener("keydown", (event) => this.key(event), { capture: true });
    this.add.addEventListener("click", () => {
      const { width, height } = this.image;
      this.append([width * 0.35, height * 0.35, width * 0.65, height * 0.65]);
      this.part(this.choice).focus();
    });
    this.remove.addEventListener("click", () => this.drop(this.choice));
    this.input.addEventListener("change", () => this.name(this.input.value));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); this.name(this.input.value); }
      if (event.key === "Enter" || event.key === "Escape") this.part(this.choice)?.focus();
      event.stopPropagation();
    });
  }

  press(event) {
    if (event.button !== 0) return;
    const corner = event.target.dataset?.corner;
    const part = event.target.closest("[data-box]");
    const from = this.point(event);
    if (corner) return this.drag(event, (at) => this.resize(this.choice, corner, at), "moved");
    if (part) {
      const k = Number(part.dataset.box);
      this.choose(k);
      const start = [...this.boxes[k].box];
      return this.drag(event, (at) => this.shift(k, start, at[0] - from[0], at[1] - from[1]), "moved");
    }
    if (event.pointerType === "touch") return undefined;  // a finger scrolls; "Add box" is for it
    const mark = svg("rect", { class: "new" });
    this.drawing.append(mark);
    let box = null;
    return this.drag(event, (at) => {
      box = [Math.min(from[0], at[0]), Math.min(from[1], at[1]), Math.max(from[0], at[0]), Math.max(from[1], at[1])];
      const [x1, y1, x2, y2] = box.map((value) => value * this.scale);
      Object.entries({ x: x1, y: y1, width: x2 - x1, height: y2 - y1 }).forEach(([key, value]) => mark.setAttribute(key, value));
    }, null, () => {
      mark.remove();
      const large = box && Math.min(box[2] - box[0], box[3] - box[1]) * this.scale >= LEAST;
      if (large) this.append(box); else this.choose(-1);
      if (large) this.input.focus();
    });
  }

  drag(event, move, kind, end = () => {}) {
    event.preventDefault();
    const { pointerId } = event;
    let moved = false;
    const on = (next) => {
      if (next.pointerId !== pointerId) return;
      if (!moved && Math.hypot(next.clientX - event.clientX, next.clientY - event.clientY) < 3) return;
      moved = true;
      move(this.point(next));
    };
    const off = (next) => {
      if (next.pointerId !== pointerId) return;
      removeEventListener("pointermove", on);
      removeEventListener("pointerup", off);
      removeEventListener("pointercancel", off);
      end();
      if (moved && kind) { this.draw(); this.changed(kind); }
      else if (kind) this.part(this.choice)?.focus();
    };
    addEventListener("pointermove", on);
    addEventListener("pointerup", off);
    addEventListener("pointercancel", off);
  }

  shift(k, [x1, y1, x2, y2], dx, dy) {
    const { width, height } = this.image;
    const ex = Math.max(-x1, Math.min(width - x2, dx));
    const ey = Math.max(-y1, Math.min(height - y2, dy));
    this.put(k, [x1 + ex, y1 + ey, x2 + ex, y2 + ey]);
  }

  resize(k, corner, [x, y]) {
    const box = [...this.boxes[k].box];
    const [i, j] = CORNERS[corner];
    box[i] = x;
    box[j] = y;
    if (box[2] - box[0] >= 2 && box[3] - box[1] >= 2) this.put(k, box);
  }

  // A new place for a box, shown at once without drawing all.
  put(k, box) {
    this.boxes[k] = { ...this.boxes[k], box };
    const frame = this.frame(k);
    this.part(k).querySelectorAll("rect").forEach((rect) => Object.entries(frame).forEach(([key, value]) => rect.setAttribute(key, value)));
    this.drawing.querySelector(".handles").replaceWith(this.handles());
  }

  append(box) {
    this.boxes = [...this.boxes, { box, label: null, typed: false, colour: null }];
    this.choice = this.boxes.length - 1;
    this.draw();
    this.choose(this.choice);
    this.changed("added");
  }

  drop(k) {
    if (k < 0) return;
    this.boxes = this.boxes.filter((_, i) => i !== k);
    this.choose(-1);
    this.draw();
    (this.part(Math.min(k, this.boxes.length - 1)) || this.add).focus();  // what had the focus is gone
    this.changed("deleted", k);
  }

  name(text) {
    const k = this.choice;
    const label = text.trim();
    if (k < 0 || (label === "" && !this.boxes[k].typed) || (this.boxes[k].typed && this.boxes[k].label === label)) return;
    this.boxes[k] = { ...this.boxes[k], label: label || null, typed: label !== "" };
    this.draw();
    this.changed("named");
  }

  key(event) {
    const part = event.target.closest?.(".box");
    if (!part) return;
    const k = Number(part.dataset.box);
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const step = Math.max(1, Math.round(this.image.width / 100));
    if (way && (event.shiftKey || event.altKey)) {
      this.choose(k);
      const [x1, y1, x2, y2] = this.boxes[k].box;
      if (event.shiftKey) this.shift(k, [x1, y1, x2, y2], way[0] * step, way[1] * step);
      else this.resize(k, "se", [Math.min(x2 + way[0] * step, this.image.width), Math.min(y2 + way[1] * step, this.image.height)]);
      this.draw();
      this.changed("moved");
    } else if (event.key === "e" && !event.ctrlKey && !event.metaKey && !this.letters) {
      this.choose(k);
      this.input.focus();
    } else if (event.key === "F2") {
      this.choose(k);
      this.input.focus();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.drop(k);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
export const letterOf = (k) => LETTERS[k] || "";
export const boxOf = (letter) => LETTERS.indexOf(letter);

// Black or white, whichever is read better.
const inkOn = (colour) => {
  const [r, g, b] = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16) / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return 1.05 / (light + 0.05) >= (light + 0.05) / 0.0603 ? "#ffffff" : "#1a1a1a";
};
