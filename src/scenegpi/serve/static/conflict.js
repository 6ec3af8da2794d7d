// A picture that was changed elsewhere: both states, side by side, and the person's choice. Nothing is dropped before it.
import { askJson, byId, described, el, say } from "./page.js";

const names = (graph) => graph.objects.map(({ label }, k) => `${label} ${k + 1}`);
const lines = (graph) => {
  const said = names(graph);
  return [...said.map((name, k) => [name, ...described(graph.objects[k].attributes), `at ${graph.objects[k].box.map(Math.round).join(", ")}`].join(" ")),
    ...graph.relations.map(({ subject, predicate, object }) => `${said[subject]} ${predicate} ${said[object]}`)];
};

export class Conflict {
  constructor(work) { this.work = work; }

  clear() { this.open = false; byId("conflict").replaceChildren(); }

  async show() {
    const { work } = this;
    const { image, key } = work;
    if (this.open) return;
    this.open = true;
    let theirs;
    try {
      theirs = await askJson(`/api/annotations/${image}`);
    } catch (problem) {
      this.open = false;
      say(problem.message);
      return;
    }
    if (image !== work.image) return;
    const mine = work.saver.of(key).find(({ conflict }) => conflict)?.state;
    if (!mine) { this.clear(); return; }
    const [here, there] = [lines(mine.graph), theirs.graph ? lines(theirs.graph) : []];
    const card = (title, state, own, other, act, text) => {
      const keep = el("button", { type: "button", class: "button strong" }, text);
      keep.addEventListener("click", act);
      const only = own.filter((line) => !other.includes(line));
      return el("div", {}, el("h2", {}, title),
        el("p", {}, state?.graph ? `${state.graph.objects.length} boxes, ${state.graph.relations.length} relations, ${state.status}` : "nothing"),
        el("ul", {}, ...only.slice(0, 12).map((line) => el("li", {}, line)), ...(only.length > 12 ? [el("li", {}, `and ${only.length - 12} more`)] : []), ...(only.length ? [] : [el("li", { class: "none" }, "nothing that the other lacks")])), keep);
    };
    byId("conflict").replaceChildren(el("div", { class: "conflict", role: "alertdialog", "aria-label": "Changed elsewhere", tabindex: -1 },
      el("p", {}, "This picture was changed elsewhere since you opened it. Each side shows what only it has; keep one."),
      el("div", { class: "sides" },
        card("Here", mine, here, there, () => this.mine(theirs.revision), "Keep this one"),
        card(`Elsewhere${theirs.by ? `, by ${theirs.by}` : ""}`, theirs, there, here, () => this.theirs(), "Take that one"))));
    byId("conflict").firstChild.focus();
  }

  mine(revision) {
    this.clear();
    this.work.saver.keepMine(this.work.key, revision);
  }

  theirs() {
    const { work } = this;
    const { image } = work;
    this.clear();
    work.saver.keepTheirs(work.key);
    work.load(image);
  }
}
