// One picture: boxes on the photo, the graph, triplets with their alternatives, attention. Used by Try and by Browse.
import { bar, described, el, markup, numbered } from "./page.js";

const LISTED = 100;

export class Scene {
  // `find(triplet)` is offered beside each triplet where it is given.
  constructor(place, editor, { title = null, facts = "", find = null } = {}) {
    this.editor = editor;
    this.find = find;
    this.facts = el("p", { class: "facts" }, facts);
    this.graph = el("div");
    this.said = el("ol");
    this.chances = el("div", { "aria-live": "polite" });
    this.weights = el("div", { class: "weights", "aria-live": "polite" });
    this.whole = el("button", { type: "button", class: "whole", "aria-pressed": "false" }, "of the whole picture");
    this.attention = el("section", { class: "attention", hidden: true }, el("h3", {}, "Attention"), el("p", {}, this.whole), this.weights);
    this.more = el("section", { class: "alternatives", hidden: true }, el("h3", {}, "Alternatives"), this.chances);
    this.things = el("ol", { class: "things" });
    this.objects = el("section", { class: "said", hidden: true }, el("h3", {}, "Objects"), this.things);
    this.extra = el("section", { hidden: true });
    this.element = el("article", { class: "scene current" },
      title === null ? null : el("header", {}, el("h2", {}, title), this.facts),
      el("div", { class: "work" }, el("div", { class: "canvas" }, editor.figure, editor.tools), el("div", { class: "side stage" }, this.graph)),
      el("div", { class: "lists" }, el("section", { class: "said" }, el("h3", {}, "Relations, best first"), this.said), this.objects, this.more, this.attention, this.extra));
    place.replaceChildren(this.element);
    this.ended = new AbortController();
    this.none("");
  }

  // No graph yet, and why.
  none(why) {
    this.ended.abort();
    this.editor.links = [];
    this.graph.replaceChildren(el("p", { class: "none" }, why));
    this.said.replaceChildren();
    this.more.hidden = this.attention.hidden = this.objects.hidden = true;
  }

  // `graph` in its JSON form, `drawing` by the server, `pairs` with alternatives.
  show(graph, drawing, pairs = []) {
    this.ended.abort();
    this.ended = new AbortController();
    const names = numbered(graph.objects.map((each) => each.label));
    const order = graph.relations.map((_, k) => k).sort((a, b) => (graph.relations[b].score ?? 1) - (graph.relations[a].score ?? 1));
    this.pairs = new Map(pairs.map((pair) => [`${pair.subject} ${pair.object}`, pair]));
    this.data = { names, links: graph.relations.map((each) => [each.subject, each.object]) };
    this.graph.replaceChildren(drawing ? markup(drawing) : el("p", { class: "none" }, graph.objects.length ? `${graph.objects.length} objects: too many to draw as a graph.` : "No objects."));
    this.said.replaceChildren(...order.map((k) => this.row(graph, names, k)));
    if (!order.length) this.said.append(el("li", { class: "none" }, "No relation is likely enough."));
    this.list(graph, names);
    this.attention.hidden = true;
    this.weights.replaceChildren();
    this.more.hidden = !pairs.length;
    this.chances.replaceChildren(el("p", { class: "none" }, "Choose a relation to see what else it may be."));
    gallery.wire(this.element, this.data, this.ended.signal);
  }

  row(graph, names, k) {
    const { subject, predicate, object, score, factors } = graph.relations[k];
    const shown = score === undefined ? null : el("span", { class: "score", title: factors ? `P(subject) ${factors[0].toFixed(2)}, P(object) ${factors[1].toFixed(2)}, P(predicate) ${factors[2].toFixed(2)}` : null }, score.toFixed(2));
    const button = el("button", { type: "button", class: "triplet", "data-link": k },
      el("span", { class: "words" }, names[subject], " ", el("em", {}, predicate), " ", names[object]), shown);
    button.addEventListener("click", () => this.alternatives(names, subject, object));
    const row = el("li", { class: "row" }, button);
    if (this.find) row.append(this.finder([graph.objects[subject].label, predicate, graph.objects[object].label].map(quoted).join(" ")));
    return row;
  }

  // What each object is said to be; of very many those that have attributes.
  list(graph, names) {
    const some = graph.objects.map((each, k) => ({ ...each, k, words: described(each.attributes) })).filter(({ words }, _, all) => all.length <= LISTED || words.length).slice(0, LISTED);
    this.objects.hidden = !some.length;
    this.things.replaceChildren(...some.map(({ k, label, words, score }) => {
      const row = el("li", { class: "row", "data-box": k }, el("span", { class: "words" }, names[k], " ", el("small", {}, words.join(", "))), score === undefined ? null : el("span", { class: "score" }, score.toFixed(2)));
      if (this.find && words.length) row.append(this.finder([...words, label].map(quoted).join(" ")));
      return row;
    }));
  }

  finder(query) {
    const find = el("button", { type: "button", class: "find", "aria-label": `find all pictures with ${query}` }, "find all");
    find.addEventListener("click", () => this.find(query));
    return find;
  }

  alternatives(names, subject, object) {
    const pair = this.pairs.get(`${subject} ${object}`);
    if (!pair) return;
    this.chances.replaceChildren(
      el("p", {}, `${names[subject]} … ${names[object]}, related ${(100 * pair.related).toFixed(0)}%`),
      el("ol", {}, ...pair.predicates.map(([name, share]) => bar(name, share))));
  }

  // Attention, once it is there; shares in thousandths, as in the report.
  attend({ neighbours, nodes }) {
    const thousandths = (row) => row.map((share) => Math.round(1000 * share));
    this.data.rows = neighbours.map(thousandths);
    this.data.nodes = thousandths(nodes);
    this.attention.hidden = false;
    this.weights.replaceChildren(el("p", { class: "none" }, "Click an object, or press Enter on it, to see which others it attends to."));
  }
}

const quoted = (name) => `"${name.replace(/["\\]/g, "\\$&")}"`;
