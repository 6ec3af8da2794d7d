// Boxes and relations on a photo: drawn, moved, resized, named, related and deleted, by pointer, finger and keyboard.
// The parts have the classes of the report's drawing, so that gallery.wire and its style sheet serve here, too.
import { arrowParts } from "./arrows.js";
import { described, el, numbered, svg, textWidth } from "./page.js";
import { View } from "./view.js";

const SIDE = 600;
const LEAST = 6;
const TAGGED = 120;
const ATTENDED = 100;  // a model is asked about no more
const CORNERS = { nw: [0, 1], ne: [2, 1], sw: [0, 3], se: [2, 3] };
const TOOLS = {
  edit: ["Edit", "Choose, move and size boxes; drag beside them to draw one"],
  draw: ["Draw box", "Drag to draw a box, also within another"],
  relate: ["Relate", "Drag from one box to another, or choose the first and then the second"],
};

export class BoxEditor {
  // `changed(kind)` is called after a person's change; `chosen(k)` when a box is chosen (or none: -1); `related(i, j)`
  // when one box was dragged to another; `accept(name)` says, maybe later, whether a name may be given.
  constructor({ editable = true, letters = false, changed = () => {}, chosen = () => {}, related = null, accept = async () => true, names = [] } = {}) {
    Object.assign(this, { editable, letters, changed, onChosen: chosen, related, accept });
    this.boxes = [];
    this.links = [];
    this.showLinks = true;
    this.choice = this.subject = -1;
    this.tool = "edit";
    this.image = { width: 4, height: 3, url: null };
    this.drawing = svg("svg", { role: "group", "aria-label": "Boxes on the photo" });
    this.figure = el("figure", { class: `photo${editable ? " editable" : ""}${letters ? " letters" : ""}` }, this.drawing);
    this.view = new View(this.drawing, { size: () => [SIDE, this.height], drawn: () => this.later() });
    this.list = el("datalist", { id: `names-${Math.random().toString(36).slice(2)}` }, ...names.map((name) => el("option", { value: name })));
    this.input = el("input", { type: "text", list: this.list.id, "aria-label": "Name of the chosen box", placeholder: "let the model name it", maxlength: 100 });
    this.words = el("input", { type: "text", "aria-label": "Attributes of the chosen box, with commas between them", placeholder: "attributes: red, tall", maxlength: 300 });
    this.remove = this.button("Delete box", () => this.drop(this.choice));
    this.add = this.button("Add box", () => this.addMiddle());
    this.add.classList.add("add");
    this.toolButtons = Object.entries(TOOLS).filter(([tool]) => editable && (tool !== "relate" || related)).map(([tool, [name, title]]) => {
      const button = this.button(name, () => this.use(tool), title);
      button.dataset.tool = tool;
      return button;
    });
    this.arrows = this.button("Arrows", () => this.toggleLinks(), "Show relations as arrows");
    this.tools = el("div", { class: "tools" },
      el("div", { class: "group", role: "group", "aria-label": "Tools" }, ...this.toolButtons),
      ...(editable ? [this.add, this.input, ...(letters ? [this.words] : []), this.remove, this.list] : []),
      el("div", { class: "group zooms", role: "group", "aria-label": "View" },
        this.button("−", () => this.view.zoom(1 / 1.4), "Zoom out"), this.button("Fit", () => this.view.fit(), "Whole photo"), this.button("+", () => this.view.zoom(1.4), "Zoom in"), this.arrows));
    this.listen();
    this.use("edit");
    this.toggleLinks(true);
    this.choose(-1, false);
  }

  button(text, act, title = "") {
    const name = /\w/.test(text) ? null : title;
    const button = el("button", { type: "button", class: "button", title: title || null, "aria-label": name }, text);
    button.addEventListener("click", act);
    return button;
  }

  use(tool) {
    this.tool = tool;
    this.figure.dataset.tool = tool;
    this.toolButtons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.tool === tool)));
    this.mark(-1);
  }

  toggleLinks(on = !this.showLinks) {
    this.showLinks = on;
    this.arrows.setAttribute("aria-pressed", String(on));
    this.draw();
  }

  setNames(names) { this.list.replaceChildren(...names.map((name) => el("option", { value: name }))); }

  // `links` are relations: { subject, object, predicate }.
  show(image, boxes, links = this.links) {
    if (image.url !== this.image.url) this.view.region = null;
    Object.assign(this, { image, boxes, links });
    this.choice = Math.min(this.choice, boxes.length - 1);
    this.view.show();
    this.draw();
  }

  get scale() { return SIDE / this.image.width; }
  get height() { return Math.max(this.image.height * this.scale, 60); }

  // Once for many changes of the view.
  later() {
    if (this.due) return;
    this.due = requestAnimationFrame(() => { this.due = 0; this.dress(); });
  }

  // What keeps its size on the screen, for another view; the boxes themselves stay, with all that listens to them.
  dress() {
    if (!this.drawing.childElementCount || this.dressed === this.seen()) return;
    this.unit = this.view.unit;
    this.dressed = this.seen();
    const taken = [];
    const anew = (part, next) => part.replaceChildren(...next.children);
    this.drawing.querySelectorAll(":scope > .tag").forEach((tag) => anew(tag, this.tagPart(Number(tag.dataset.place ?? tag.dataset.box), taken)));
    const arrows = arrowParts(this.shownLinks, (k) => this.frame(k), this.unit, taken);
    this.drawing.querySelectorAll(":scope > .arrow").forEach((part, k) => anew(part, arrows[k]));
    this.drawing.querySelector(".handles")?.replaceWith(this.handles());
    this.drawing.style.fontSize = `${17 * this.unit}px`;  // of shares of attention
  }

  seen() { return `${this.view.unit} ${this.view.box()}`; }

  draw() {
    const focused = this.drawing.contains(document.activeElement) ? document.activeElement.dataset.box : undefined;
    const lit = new Set([...this.drawing.querySelectorAll(".on")].map((part) => `${part.dataset.box}/${part.dataset.link}`));
    this.unit = this.view.unit;
    this.dressed = this.seen();
    this.figure.classList.toggle("empty", !this.image.url);
    const back = this.image.url
      ? svg("image", { href: this.image.url, x: 0, y: 0, width: SIDE, height: this.height, preserveAspectRatio: "none" })
      : svg("rect", { class: "blank", x: 0, y: 0, width: SIDE, height: this.height });
    this.labels = this.letters ? this.boxes.map((each, k) => [letterOf(k, this.boxes.length), each.label || "?"].filter(Boolean).join(" ")) : numbered(this.boxes.map(({ label }) => label || "?"));
    const order = this.boxes.map((_, k) => k).filter((k) => !this.boxes[k].hidden).sort((a, b) => this.area(b) - this.area(a));
    const parts = order.map((k) => this.boxPart(k));
    const taken = [];
    const tags = (order.length > TAGGED ? order.slice(0, TAGGED) : order).map((k) => this.tagPart(k, taken));
    const seen = new Set(order);
    this.shownLinks = this.showLinks ? this.links.map((link, k) => ({ ...link, k })).filter(({ subject, object }) => seen.has(subject) && seen.has(object)) : [];
    const arrows = arrowParts(this.shownLinks, (k) => this.frame(k), this.unit, taken);
    const kept = ["rays", "new"].map((name) => this.drawing.querySelector(`:scope > .${name}`));
    this.drawing.replaceChildren(back, ...parts, ...arrows, kept[0] || svg("g", { class: "rays" }), ...tags, this.handles(), ...(kept[1] ? [kept[1]] : []));
    this.drawing.querySelectorAll("[data-box], [data-link]").forEach((part) => part.classList.toggle("on", lit.has(`${part.dataset.box}/${part.dataset.link}`)));
    this.drawing.style.fontSize = `${17 * this.unit}px`;  // of shares of attention
    if (this.letters || !this.editable) gallery.roving(order.map((k, i) => [k, parts[i]]).sort((a, b) => a[0] - b[0]).map(([, part]) => part));  // elsewhere gallery.wire does it
    if (focused !== undefined) this.part(Number(focused))?.focus();
  }

  area(k) { const [x1, y1, x2, y2] = this.boxes[k].box; return (x2 - x1) * (y2 - y1); }
  part(k) { return this.drawing.querySelector(`.box[data-box="${k}"]`); }

  frame(k) {
    const [x1, y1, x2, y2] = this.boxes[k].box.map((value) => value * this.scale);
    return { x: x1, y: y1, width: Math.max(x2 - x1, 1), height: Math.max(y2 - y1, 1) };
  }

  boxPart(k) {
    const frame = this.frame(k);
    const { colour, machine, locked } = this.boxes[k];
    const kind = ["box", k === this.choice && "chosen", k === this.subject && "subject", machine && "machine", locked && "locked"].filter(Boolean).join(" ");
    return svg("g", { class: kind, "data-box": k, role: "button", tabindex: -1, "aria-label": `box ${this.labels[k]}${machine ? ", found by the model" : ""}` },
      svg("rect", { class: "halo", ...frame }), svg("rect", { class: "line", stroke: colour || "#0072B2", ...frame }),
      ...(this.boxes.length > ATTENDED ? [] : [svg("rect", { class: "heat", ...frame }), svg("text", { class: "share", x: frame.x + frame.width / 2, y: frame.y + frame.height / 2 + 6, "text-anchor": "middle" })]));
  }

  // Above its box, or where there is room: names that lie on each other can't be read.
  tagPart(k, taken) {
    const { unit } = this;
    const colour = this.boxes[k].colour || "#0072B2";
    const font = (this.boxes.length > 14 ? 12 : 13.5) * unit;
    const label = this.labels[k].length > 40 ? `${this.labels[k].slice(0, 39)}…` : this.labels[k];
    const frame = this.frame(k);
    const [wide, tall] = [textWidth(label) * font + 9 * unit, font * 1.4];
    const [x0, y0, w0, h0] = this.view.box();
    const left = Math.max(x0, Math.min(frame.x, x0 + w0 - wide));
    const right = Math.max(x0, Math.min(frame.x + frame.width - wide, x0 + w0 - wide));
    const heights = [frame.y - tall, frame.y, frame.y + frame.height, frame.y + frame.height - tall, frame.y + tall, frame.y + 2 * tall];
    const free = ([x, y]) => y >= y0 && y + tall <= y0 + h0 && !taken.some((t) => x < t.x + t.wide && t.x < x + wide && y < t.y + t.tall && t.y < y + tall);
    const [x, y] = heights.flatMap((at) => [[left, at], [right, at]]).find(free) ?? [left, Math.max(0, frame.y - tall)];
    taken.push({ x, y, wide, tall });
    const text = svg("text", { x: x + 4.5 * unit, y: y + tall * 0.74 });
    Object.assign(text.style, { fontSize: `${font}px`, fill: inkOn(colour) });
    text.textContent = label;
    return svg("g", { class: "tag", "data-box": k }, svg("rect", { rx: 3 * unit, fill: colour, x, y, width: wide, height: tall }), text);
  }

  handles() {
    const group = svg("g", { class: "handles" });
    if (!this.editable || this.choice < 0 || this.boxes[this.choice].hidden) return group;
    const [x1, y1, x2, y2] = this.boxes[this.choice].box.map((value) => value * this.scale);
    const side = 11 * this.unit;
    const put = (name, x, y, round) => svg("rect", { class: `handle ${name}`, "data-corner": name, x: x - side / 2, y: y - side / 2, width: side, height: side, rx: round ? side / 2 : side / 5 });
    if (!this.boxes[this.choice].locked) Object.entries({ nw: [x1, y1], ne: [x2, y1], sw: [x1, y2], se: [x2, y2] }).forEach(([corner, [x, y]]) => group.append(put(corner, x, y)));
    if (this.related) group.append(put("link", x2, (y1 + y2) / 2, true));
    return group;
  }

  choose(k, tell = true) {
    this.choice = k;
    this.input.hidden = this.words.hidden = this.remove.hidden = k < 0;
    if (k >= 0) this.words.value = described(this.boxes[k].attributes).join(", ");
    if (k >= 0) this.input.value = this.boxes[k].typed ? this.boxes[k].label || "" : "";
    if (k >= 0) this.input.placeholder = this.boxes[k].typed ? "" : this.boxes[k].label || "let the model name it";
    if (this.drawing.childElementCount) {
      this.drawing.querySelectorAll(".box").forEach((part) => part.classList.toggle("chosen", Number(part.dataset.box) === k));
      this.drawing.querySelector(".handles").replaceWith(this.handles());
    }
    if (tell) this.onChosen(k);
  }

  // The subject of a relation that is being made.
  mark(k) {
    this.subject = k;
    this.drawing.querySelectorAll(".box").forEach((part) => part.classList.toggle("subject", Number(part.dataset.box) === k));
  }

  point(event) {
    const [x, y] = this.view.at(event);
    const clip = (value, most) => Math.max(0, Math.min(most, value));
    return [clip(x / this.scale, this.image.width), clip(y / this.scale, this.image.height)];
  }

  listen() {
    this.drawing.addEventListener("pointerdown", (event) => this.press(event));
    this.drawing.addEventListener("keydown", (event) => this.key(event), { capture: true });
    this.input.addEventListener("change", () => this.name(this.input.value));
    this.words.addEventListener("change", () => this.describe(this.words.value));
    [this.input, this.words].forEach((field) => field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.choose(this.choice, false);  // as it was
      if (event.key === "Enter" || event.key === "Escape") {
        event.preventDefault();
        (this.part(this.choice) || this.add).focus();  // where it was changed, that says so
      }
      event.stopPropagation();
    }));
  }

  addMiddle() {
    const [x, y, wide, tall] = this.view.box().map((value) => value / this.scale);
    this.append([x + wide * 0.35, y + tall * 0.35, x + wide * 0.65, y + tall * 0.65]);
    this.part(this.choice).focus();
  }

  press(event) {
    if (this.view.fingers.size > 1) return undefined;
    if (event.button === 1 || (event.button === 0 && this.view.space)) return this.panning(event);
    if (event.button !== 0) return undefined;
    const corner = event.target.dataset?.corner;
    const part = event.target.closest("[data-box]");
    if (corner === "link") return this.linking(event, this.choice);
    if (corner) return this.drag(event, (at) => this.resize(this.choice, corner, at), "moved");
    if (this.editable && this.tool === "draw") return this.drawing_(event);
    if (part && this.tool === "relate") return this.linking(event, Number(part.dataset.box));
    if (part && this.editable) return this.moving(event, Number(part.dataset.box));
    if (part) return undefined;
    if (this.editable && this.tool === "edit" && event.pointerType !== "touch") return this.drawing_(event);
    return this.panning(event);
  }

  panning(event) {
    let last = [event.clientX, event.clientY];
    return this.drag(event, (_, next) => {
      this.view.pan((last[0] - next.clientX) * this.unit, (last[1] - next.clientY) * this.unit);
      last = [next.clientX, next.clientY];
    }, null, (moved) => { if (!moved) { this.choose(-1); this.mark(-1); } });
  }

  moving(event, k) {
    const before = this.choice;
    if (event.shiftKey && this.related && before >= 0 && before !== k) { event.preventDefault(); this.related(before, k); return undefined; }
    this.choose(k);
    if (this.boxes[k].locked) { event.preventDefault(); return this.part(k).focus(); }
    const start = [...this.boxes[k].box];
    const from = this.point(event);
    return this.drag(event, (at) => this.shift(k, start, at[0] - from[0], at[1] - from[1]), "moved");
  }

  drawing_(event) {
    const from = this.point(event);
    const mark = svg("rect", { class: "new" });
    this.drawing.append(mark);
    let box = null;
    return this.drag(event, (at) => {
      box = [Math.min(from[0], at[0]), Math.min(from[1], at[1]), Math.max(from[0], at[0]), Math.max(from[1], at[1])];
      const [x1, y1, x2, y2] = box.map((value) => value * this.scale);
      Object.entries({ x: x1, y: y1, width: x2 - x1, height: y2 - y1 }).forEach(([key, value]) => mark.setAttribute(key, value));
    }, null, () => {
      mark.remove();
      const large = box && Math.min(box[2] - box[0], box[3] - box[1]) * this.scale >= LEAST * this.unit;
      if (!large) { this.choose(-1); return; }
      if (this.tool === "draw") this.use("edit");
      this.append(box);
      this.input.focus();
    });
  }

  // From a box to another: by dragging, or by choosing one after the other.
  linking(event, k) {
    const { x, y, width, height } = this.frame(k);
    const line = svg("line", { class: "new", x1: x + width / 2, y1: y + height / 2, x2: x + width / 2, y2: y + height / 2 });
    this.drawing.append(line);
    const over = (next) => Number(document.elementFromPoint(next.clientX, next.clientY)?.closest?.(".photo [data-box]")?.dataset.box ?? -1);
    let last = event;
    return this.drag(event, (_, next) => {
      last = next;
      const [x2, y2] = this.view.at(next);
      line.setAttribute("x2", x2);
      line.setAttribute("y2", y2);
      const at = over(next);
      this.drawing.querySelectorAll(".box").forEach((part) => part.classList.toggle("aimed", Number(part.dataset.box) === at && at !== k));
    }, null, (moved) => {
      line.remove();
      this.drawing.querySelectorAll(".aimed").forEach((part) => part.classList.remove("aimed"));
      const first = moved ? k : this.subject;
      const second = moved ? over(last) : k;
      this.mark(-1);
      if (first >= 0 && second >= 0 && first !== second) this.related(first, second);
      else if (!moved && first < 0) { this.choose(k); this.mark(k); }
    });
  }

  drag(event, move, kind, end = () => {}) {
    event.preventDefault();
    const { pointerId } = event;
    let moved = false;
    const on = (next) => {
      if (next.pointerId !== pointerId || this.view.fingers.size > 1) return;
      if (!moved && Math.hypot(next.clientX - event.clientX, next.clientY - event.clientY) < 4) return;
      moved = true;
      move(this.point(next), next);
    };
    const off = (next) => {
      if (next.pointerId !== pointerId) return;
      removeEventListener("pointermove", on);
      removeEventListener("pointerup", off);
      removeEventListener("pointercancel", off);
      end(moved && next.type === "pointerup");
      if (moved && kind) { this.draw(); this.changed(kind, this.choice); }
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
    this.boxes = this.boxes.map((each, i) => (i === k ? { ...each, box } : each));
    const frame = this.frame(k);
    this.part(k).querySelectorAll("rect").forEach((rect) => Object.entries(frame).forEach(([key, value]) => rect.setAttribute(key, value)));
    this.drawing.querySelector(".handles").replaceWith(this.handles());
  }

  append(box) {
    this.boxes = [...this.boxes, { box, label: null, typed: false, colour: null }];
    this.choice = this.boxes.length - 1;
    this.draw();
    this.choose(this.choice);
    this.changed("added", this.choice);
  }

  drop(k) {
    if (k < 0) return;
    this.boxes = this.boxes.filter((_, i) => i !== k);
    this.links = this.links.filter(({ subject, object }) => subject !== k && object !== k).map((link) => ({ ...link, subject: link.subject - (link.subject > k), object: link.object - (link.object > k) }));
    this.choose(-1);
    this.draw();
    (this.part(Math.min(k, this.boxes.length - 1)) || this.add).focus();  // what had the focus is gone
    this.changed("deleted", k);
  }

  async name(text) {
    const k = this.choice;
    const label = text.trim();
    const { typed, label: before } = this.boxes[k] || {};
    if (k < 0 || (label === "" && (!typed || this.letters)) || (typed && before === label)) return;
    if (label && !await this.accept(label)) return;
    if (!this.boxes[k]) return;
    this.boxes = this.boxes.map((each, i) => (i === k ? { ...each, label: label || null, typed: label !== "" } : each));
    this.draw();
    this.changed("named", k);
  }

  describe(text) {
    const k = this.choice;
    const attributes = [...new Set(text.split(",").map((name) => name.trim()).filter(Boolean))];
    if (k < 0 || attributes.join() === described(this.boxes[k].attributes).join()) return;
    this.boxes = this.boxes.map((each, i) => (i === k ? { ...each, attributes } : each));
    this.changed("described", k);
  }

  rename(k) {
    this.choose(k);
    this.input.focus();
    this.input.select();
  }

  key(event) {
    if (event.target.closest?.(".photo") && this.view.key(event)) { event.preventDefault(); event.stopPropagation(); return; }
    const part = event.target.closest?.(".box");
    if (!part || !this.editable) return;
    const k = Number(part.dataset.box);
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const step = Math.max(1, Math.round(this.image.width / 100));
    if (way && (event.shiftKey || event.altKey)) {
      this.choose(k);
      if (this.boxes[k].locked) return;
      const [x1, y1, x2, y2] = this.boxes[k].box;
      if (event.shiftKey) this.shift(k, [x1, y1, x2, y2], way[0] * step, way[1] * step);
      else this.resize(k, "se", [Math.min(x2 + way[0] * step, this.image.width), Math.min(y2 + way[1] * step, this.image.height)]);
      this.draw();
      this.changed("moved", k);
    } else if ((event.key === "e" && !event.ctrlKey && !event.metaKey && !this.letters) || event.key === "F2") this.rename(k);
    else if (event.key === "Delete" || event.key === "Backspace") this.drop(k);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// One letter for each box up to 52; of more, two letters for each.
const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const SMALL = 26;
export const letterOf = (k, count) => (count <= LETTERS.length ? LETTERS[k] : k < SMALL * SMALL ? LETTERS[Math.floor(k / SMALL)] + LETTERS[k % SMALL] : "");
// The box that letters name; -1 for none, null where a letter is missing.
export const boxOf = (typed, count) => {
  if (count <= LETTERS.length) { const k = LETTERS.indexOf(typed); return k < count ? k : -1; }
  const [first, second] = [...typed].map((letter) => LETTERS.slice(0, SMALL).indexOf(letter));
  if (first < 0) return -1;
  if (second === undefined) return null;
  return second >= 0 && first * SMALL + second < count ? first * SMALL + second : -1;
};

// Black or white, whichever is read better.
const inkOn = (colour) => {
  const [r, g, b] = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16) / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return 1.05 / (light + 0.05) >= (light + 0.05) / 0.0603 ? "#ffffff" : "#1a1a1a";
};
