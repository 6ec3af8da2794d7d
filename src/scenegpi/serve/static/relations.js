// The relations of the picture: chosen, given another predicate, removed; the model's ranked alternatives as buttons.
import { el } from "./page.js";

export class Relations {
  constructor(work) {
    this.work = work;
    this.choice = -1;
    this.list = el("ol", { class: "list" });
    this.names = el("datalist", { id: "predicates" });
    this.field = el("input", { type: "text", list: "predicates", "aria-label": "Predicate of the chosen relation", placeholder: "predicate", maxlength: 100 });
    this.chances = el("div", { class: "chances", role: "group", "aria-label": "Other predicates, likeliest first" });
    this.title = el("p", { class: "pair" });
    this.chosen = el("div", { class: "chosen-relation", hidden: true }, this.title, this.chances, this.field, this.names);
    this.element = el("section", { class: "panel" }, el("h2", {}, "Relations"), this.list, this.chosen);
    this.field.addEventListener("change", () => this.relabel(this.field.value.trim()));
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { this.relabel(this.field.value.trim()); this.field.blur(); }
      if (event.key === "Escape") this.field.blur();
      event.stopPropagation();
    });
  }

  clear() { this.choice = -1; this.list.replaceChildren(); this.chosen.hidden = true; }
  setNames() { this.names.replaceChildren(...this.work.predicates.map((name) => el("option", { value: name }))); }

  words({ subject, predicate, object }) {
    return el("span", { class: "words" }, this.work.name(subject), " ", el("em", {}, predicate), " ", this.work.name(object));
  }

  draw() {
    const { work } = this;
    const { relations } = work.now;
    if (!this.names.childElementCount || this.named !== work.predicates) { this.setNames(); this.named = work.predicates; }
    this.list.replaceChildren(...relations.map((each, k) => {
      const row = el("button", { type: "button", class: "relation", "aria-current": String(k === this.choice) }, this.words(each));
      row.addEventListener("click", () => this.pick(k));
      row.addEventListener("pointerenter", () => work.light(each.subject, each.object));
      row.addEventListener("pointerleave", () => work.rest());
      const gone = el("button", { type: "button", class: "remove", "aria-label": `Remove ${work.name(each.subject)} ${each.predicate} ${work.name(each.object)}`, title: "Remove" }, "×");
      gone.addEventListener("click", () => this.remove(k));
      return el("li", { class: "row" }, row, gone);
    }));
    if (!relations.length) this.list.append(el("li", { class: "none" }, "None yet: drag from box to box, or type their letters."));
    this.alternatives();
  }

  pick(k, tell = true) {
    this.choice = k;
    const { work } = this;
    if (!work.now || !tell) return;
    work.editor.links = work.now.relations.map((each, i) => ({ ...each, chosen: i === k }));
    work.editor.draw();
    work.rest();
    this.draw();
    this.list.children[k]?.scrollIntoView({ block: "nearest" });
  }

  // Buttons 1 to 9, likeliest first.
  async alternatives() {
    const { work } = this;
    const chosen = work.now?.relations[this.choice];
    this.chosen.hidden = !chosen;
    if (!chosen) return;
    this.title.textContent = `${work.name(chosen.subject)} … ${work.name(chosen.object)}`;
    if (document.activeElement !== this.field) this.field.value = chosen.predicate;
    const ranked = (await work.proposals.ranked(chosen.subject, chosen.object)).slice(0, 9);
    if (chosen !== work.now?.relations[this.choice]) return;
    this.ranked = ranked;
    this.chances.replaceChildren(...ranked.map(([name, share], k) => {
      const button = el("button", { type: "button", class: "chance", "aria-pressed": String(name === chosen.predicate) },
        el("kbd", {}, String(k + 1)), ` ${name} `, share ? el("span", { class: "number" }, `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`) : null);
      button.addEventListener("click", () => this.relabel(name));
      return button;
    }));
  }

  choose(k) { if (this.work.now.relations[this.choice] && this.ranked?.[k]) this.relabel(this.ranked[k][0]); }

  async relabel(predicate) {
    const { work, choice } = this;
    const chosen = work.now?.relations[choice];
    if (!chosen || !predicate || chosen.predicate === predicate) return;
    if (!await work.accept("predicates", predicate)) { this.field.value = chosen.predicate; return; }
    if (chosen !== work.now?.relations[choice] || work.has({ ...chosen, predicate }) >= 0) return;
    work.change({ ...work.now, relations: work.now.relations.map((each, k) => (k === choice ? { ...each, predicate } : each)) });
    this.pick(choice);
  }

  remove(k = this.choice) {
    const { work } = this;
    if (k < 0 || !work.now?.relations[k]) return;
    this.choice = -1;
    work.change({ ...work.now, relations: work.now.relations.filter((_, i) => i !== k) });
    this.pick(-1);
    this.list.querySelectorAll(".relation")[Math.min(k, work.now.relations.length - 1)]?.focus();
  }
}
