// What pictures may be chosen by: labels and predicates with their counts, score, state, tags, order.
import { askJson, byId, el, say } from "./page.js";

const SHOWN = 12;
const quoted = (name) => `"${name.replace(/["\\]/g, "\\$&")}"`;

export class Facets {
  constructor(browse) {
    this.browse = browse;
    this.lists = {};
    const select = (name, options) => {
      const field = el("select", {}, ...options.map(([value, text]) => el("option", { value }, text)));
      field.addEventListener("change", () => browse.go({ [name]: field.value, like: "", picture: "" }));
      return field;
    };
    this.order = select("order", [["added", "as added"], ["uncertain", "most uncertain first"]]);
    this.status = select("status", [["any", "any"], ["none", "not begun"], ["begun", "begun"], ["done", "done"], ["reviewed", "reviewed"], ["rejected", "rejected"]]);
    this.tag = select("tag", [["", "any"]]);
    this.least = el("input", { type: "range", min: 0, max: 1, step: 0.05 });
    this.said = el("output", {});
    this.least.addEventListener("input", () => { this.said.textContent = Number(this.least.value).toFixed(2); });
    this.least.addEventListener("change", () => browse.go({ least: Number(this.least.value) }));
    const row = (text, ...fields) => el("label", { class: "choice" }, el("span", {}, text), ...fields);
    this.rows = { least: row("Score at least", this.least, this.said), order: row("Order", this.order), status: row("State", this.status), tag: row("Tag", this.tag) };
    const names = ["labels", "predicates"].map((kind) => {
      const list = el("ul", { class: "chips" });
      const filter = el("input", { type: "search", placeholder: `find ${kind}`, "aria-label": `Find ${kind}` });
      filter.addEventListener("input", () => this.draw(kind));
      this.lists[kind] = { list, filter, section: el("section", {}, el("h2", {}, { labels: "Objects", predicates: "Relations" }[kind]), filter, list) };
      return this.lists[kind].section;
    });
    this.element = el("details", { class: "facets" }, el("summary", {}, "Filters"), el("div", { class: "choices-list" }, ...Object.values(this.rows)), ...names);
    this.element.open = matchMedia("(min-width: 861px)").matches;
    byId("facets").replaceChildren(this.element);
    this.counts = { labels: [], predicates: [], tags: [], statuses: {} };
    this.fill();
  }

  async fill() {
    const { library } = this.browse;
    try {
      this.counts = await askJson("/api/facets");
    } catch (problem) { say(problem.message); }
    const tags = this.counts.tags.map(([name]) => name);
    if (this.browse.state.tag && !tags.includes(this.browse.state.tag)) tags.push(this.browse.state.tag);
    this.tag.replaceChildren(el("option", { value: "" }, "any"), ...tags.map((name) => el("option", { value: name }, name)));
    this.rows.status.hidden = !library.annotate;
    this.rows.tag.hidden = !tags.length;
    this.rows.least.hidden = this.rows.order.hidden = !library.search;
    byId("facets").hidden = !library.search && !library.annotate;
    Object.entries(this.lists).forEach(([kind, { section }]) => { section.hidden = !this.counts[kind].length; });
    this.show();
  }

  show() {
    const { least, status, tag, order, query, like } = this.browse.state;
    Object.assign(this.least, { value: least });
    this.said.textContent = least.toFixed(2);
    this.status.value = status;
    this.tag.value = tag;
    this.order.value = order;
    this.order.disabled = Boolean(query) || like !== "";
    ["labels", "predicates"].forEach((kind) => this.draw(kind));
  }

  clause(kind, name) { return kind === "labels" ? quoted(name) : `* ${quoted(name)} *`; }

  draw(kind) {
    const { list, filter } = this.lists[kind];
    const { query } = this.browse.state;
    const text = filter.value.trim().toLowerCase();
    const whole = ` and ${query} and `;
    const has = (name) => whole.includes(` and ${this.clause(kind, name)} and `);
    const some = this.counts[kind].filter(([name]) => name.toLowerCase().includes(text));
    const first = [...some.filter(([name]) => has(name)), ...some.filter(([name]) => !has(name))].slice(0, SHOWN);
    list.replaceChildren(...first.map(([name, count]) => {
      const on = has(name);
      const chip = el("button", { type: "button", class: "chip", "aria-pressed": String(on) }, name, " ", el("span", { class: "number" }, count.toLocaleString("en")));
      chip.addEventListener("click", () => {
        const clause = this.clause(kind, name);
        const next = on ? whole.replace(` and ${clause} and `, " and ").replace(/^ and | and $/g, "").replace(/^ and$/, "").trim() : query ? `${query} and ${clause}` : clause;
        this.browse.search(next === "and" ? "" : next);
      });
      return el("li", {}, chip);
    }));
    if (some.length > first.length) list.append(el("li", { class: "none" }, `and ${(some.length - first.length).toLocaleString("en")} more`));
  }
}
