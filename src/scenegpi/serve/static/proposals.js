// What the model makes of the boxes: the best relations of the picture, and the likeliest predicates of each pair.
import { askJson, el, say } from "./page.js";

const SHOWN = 20;
const MOST = 100;
const ALTERNATIVES = 10;

// Words repeat within a picture: a predicate is likelier by its share of what was said of other pairs, of those whose
// subject has this name, and of those whose object has it. `ranked` are [predicate, probability] of the pair.
export const inContext = (ranked, { subject, object }, relations, label) => {
  const others = relations.filter((each) => each.subject !== subject || each.object !== object);
  const kinds = [others, others.filter((each) => label(each.subject) === label(subject)), others.filter((each) => label(each.object) === label(object))];
  const shareIn = (some, name) => (some.length ? some.filter(({ predicate }) => predicate === name).length / some.length : 0);
  const weighed = ranked.map(([name, share]) => [name, share * Math.exp(kinds.reduce((sum, some) => sum + shareIn(some, name), 0))]);
  const [before, after] = [ranked, weighed].map((some) => some.reduce((sum, [, share]) => sum + share, 0));
  return weighed.map(([name, share]) => [name, share * before / (after || 1)]).sort((a, b) => b[1] - a[1]);
};

export class Proposals {
  constructor(work) {
    this.work = work;
    this.list = el("ol", { class: "list" });
    this.element = el("section", { class: "panel" }, el("h2", {}, "Proposals"), this.list);
    this.clear();
  }

  clear() { this.boxes = null; this.pairs = new Map(); this.offered = []; this.asked = Promise.resolve(); this.list.replaceChildren(); }
  wait() { this.offered = null; this.draw(); }
  // Only marks have changed, not the boxes: what was asked holds.
  same(before, after) { if (this.boxes === before) this.boxes = after; }

  ask() {
    const { now } = this.work;
    if (this.boxes === now.boxes) { this.draw(); return; }
    this.boxes = now.boxes;
    this.pairs = new Map();
    this.offered = null;
    this.asked = this.answer(now.boxes);
    this.draw();
  }

  async answer(boxes) {
    const { work } = this;
    const stale = () => boxes !== this.boxes;
    const named = boxes.flatMap(({ label }, k) => (label ? [k] : []));
    let offered = [];
    try {
      if (named.length > 1 && named.length <= MOST) {
        const { graph, pairs, kept } = await this.predict(boxes, named, 100);
        if (stale()) return;
        this.take(pairs, kept);
        const known = new Set(work.predicates);
        offered = graph.relations.map((each) => ({ ...each, subject: kept[each.subject], object: kept[each.object] }))
          .filter(({ predicate }) => known.has(predicate)).slice(0, SHOWN);
      }
    } catch (problem) {
      if (stale()) return;
      say(problem.message);
    }
    this.offered = offered;
    this.draw();
  }

  async predict(boxes, some, top) {
    const { work } = this;
    const { width, height } = work.editor.image;
    const body = { image: work.image, boxes: some.map((k) => boxes[k].box), labels: some.map((k) => boxes[k].label), width, height, alternatives: ALTERNATIVES, top, min_relation: 0 };
    const { graph, kept, pairs } = await askJson("/api/predict", { method: "POST", body });
    return { graph, pairs, kept: kept.map((k) => some[k]) };
  }

  // The person says that they are related; what is left to say is how.
  take(pairs, kept) {
    const known = new Set(this.work.predicates);
    pairs.forEach(({ subject, object, predicates, related }) => this.pairs.set(`${kept[subject]} ${kept[object]}`,
      predicates.filter(([name]) => known.has(name)).map(([name, share]) => [name, share / (related || 1)])));
  }

  // [predicate, probability], likeliest first; of a picture with many boxes the pair is asked for alone.
  async ranked(subject, object) {
    await this.asked;
    const { boxes } = this;
    const key = `${subject} ${object}`;
    if (!this.pairs.has(key) && boxes?.[subject]?.label && boxes[object]?.label) {
      try {
        const { pairs, kept } = await this.predict(boxes, [subject, object], 0);
        if (boxes === this.boxes) this.take(pairs, kept);
      } catch (problem) { say(problem.message); }
    }
    const { now } = this.work;
    const ranked = inContext(this.pairs.get(key) || [], { subject, object }, now?.relations || [], (k) => now.boxes[k]?.label);
    const there = new Set(ranked.map(([name]) => name));
    return [...ranked, ...this.work.predicates.filter((name) => !there.has(name)).map((name) => [name, 0])];  // the rest, in their order
  }

  draw() {
    const { work } = this;
    if (!work.now) return;
    const { boxes } = work.now;
    const there = ({ subject, object }) => boxes[subject]?.label && boxes[object]?.label && !boxes[subject].hidden && !boxes[object].hidden;
    const open = (this.offered || []).filter((each) => there(each) && work.has(each) < 0);
    const focused = [...this.list.querySelectorAll("button")].indexOf(document.activeElement);
    this.list.replaceChildren(...open.map((each) => {
      const row = el("button", { type: "button", class: "proposal" }, work.relations.words(each), el("span", { class: "score" }, each.score.toFixed(2)));
      row.addEventListener("click", () => work.relate(each.subject, each.object, each.predicate));
      row.addEventListener("focus", () => work.light(each.subject, each.object));
      row.addEventListener("pointerenter", () => work.light(each.subject, each.object));
      row.addEventListener("pointerleave", () => work.rest());
      return el("li", {}, row);
    }));
    const many = boxes.length > MOST ? `More than ${MOST} boxes: relate two, and the model ranks their predicates.` : "None left.";
    if (!open.length) this.list.append(el("li", { class: "none" }, !this.offered ? "Asking the model…" : boxes.length > 1 ? many : "Two boxes are needed."));
    if (focused >= 0) this.list.querySelectorAll("button")[Math.min(focused, open.length - 1)]?.focus();
  }

  move(by) {
    const rows = [...this.list.querySelectorAll("button")];
    const at = rows.indexOf(document.activeElement);
    if (!rows.length) return false;
    rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : (at + by + rows.length) % rows.length].focus();
    return true;
  }
}
