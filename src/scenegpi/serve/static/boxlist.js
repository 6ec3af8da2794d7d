// The boxes as a list: filtered by name, hidden, locked, chosen. What is hidden or locked is a matter of this window.
import { described, el } from "./page.js";

export class BoxList {
  constructor(work) {
    this.work = work;
    this.list = el("ol", { class: "list" });
    this.filter = el("input", { type: "search", placeholder: "show only …", "aria-label": "Show only boxes whose name has" });
    this.filter.addEventListener("input", () => this.apply());
    this.filter.addEventListener("keydown", (event) => event.stopPropagation());
    this.element = el("section", { class: "panel" }, el("h2", {}, "Boxes"), this.filter, this.list);
  }

  clear() { this.list.replaceChildren(); }

  // Marks of this window go on with the boxes, and are no change of the annotation.
  mark(k, marks) {
    const { work } = this;
    const boxes = work.now.boxes.map((each, i) => (k === i || k === null ? { ...each, ...(typeof marks === "function" ? marks(each) : marks) } : each));
    work.proposals.same(work.now.boxes, boxes);
    work.now = { ...work.now, boxes };
    work.editor.show(work.editor.image, boxes);
    this.draw();
    work.proposals.draw();
  }

  apply() {
    if (!this.work.now) return;
    const text = this.filter.value.trim().toLowerCase();
    this.mark(null, ({ label }) => ({ hidden: !(label || "?").toLowerCase().includes(text) }));
  }

  draw() {
    const { work } = this;
    this.list.replaceChildren(...work.now.boxes.map((each, k) => {
      const row = el("button", { type: "button", class: "relation" }, el("span", { class: "words" }, work.name(k), " ", el("small", {}, described(each.attributes).join(", "))), each.machine ? el("span", { class: "badge-machine" }, "model") : null);
      row.addEventListener("click", () => { work.editor.choose(k); work.editor.part(k)?.focus(); });
      row.addEventListener("pointerenter", () => work.light(k));
      row.addEventListener("pointerleave", () => work.rest());
      const toggle = (field, on, off) => {
        const button = el("button", { type: "button", class: "toggle", "aria-pressed": String(Boolean(each[field])), "aria-label": `${on} box ${work.name(k)}`, title: on }, each[field] ? off : on);
        button.addEventListener("click", () => { this.mark(k, { [field]: !each[field] }); this.list.children[k]?.querySelectorAll(".toggle")[field === "hidden" ? 0 : 1]?.focus(); });
        return button;
      };
      return el("li", { class: `row${each.hidden ? " faded" : ""}` }, row, toggle("hidden", "Hide", "Hidden"), toggle("locked", "Lock", "Locked"));
    }));
    if (!work.now.boxes.length) this.list.append(el("li", { class: "none" }, "None: drag on the photo, or press “Add box”."));
  }
}
