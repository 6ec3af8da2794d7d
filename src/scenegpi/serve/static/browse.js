// Browse and search: thumbnails, a search box with suggestions, a picture with its graph.
import { BoxEditor } from "./boxes.js";
import { askJson, byId, el, say, svg } from "./page.js";
import { Scene } from "./scene.js";

const PAGE = 40;
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"];

export class Browse {
  constructor(library) {
    this.library = library;
    const what = { store: "store", data: "data set", photos: "folder" }[library.kind];
    byId("browse-lead").textContent = library.total
      ? `${library.total.toLocaleString("en")} pictures of the ${what} ${library.name}.${library.search ? " Join triples with “and”; ?a is a variable, * anything; “without” and numbers work, too." : ""}`
      : "The server was started without pictures: scenegpi serve FOLDER.";
    byId("search").hidden = !library.search;
    byId("search").addEventListener("submit", (event) => { event.preventDefault(); this.search(byId("query").value); });
    byId("query").addEventListener("input", () => this.suggest());
    byId("more").addEventListener("click", () => this.load());
  }

  // What the address says: #browse/a query
  open(query) {
    if (query === this.query) return;
    byId("query").value = query;
    this.query = query;
    this.shown = 0;
    byId("grid").replaceChildren();
    byId("browse-scene").replaceChildren();
    this.load();
  }

  search(text) { location.hash = `browse/${encodeURIComponent(text.trim())}`; }

  async suggest() {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      const last = byId("query").value.split(/\band\b/);
      const { suggestions } = await askJson(`/api/suggest?q=${encodeURIComponent(last.at(-1).trim().slice(0, 200))}`);
      const before = last.slice(0, -1).map((part) => part.trim()).join(" and ");
      byId("suggestions").replaceChildren(...suggestions.map((text) => el("option", { value: before ? `${before} and ${text}` : text })));
    }, 150);
  }

  async load() {
    const { query, shown } = this;
    say("");
    try {
      const page = `limit=${PAGE}&offset=${shown}`;
      const found = query ? await askJson(`/api/search?q=${encodeURIComponent(query)}&${page}`) : await askJson(`/api/images?${page}`);
      if (query !== this.query) return;
      const some = found.hits || found.images;
      this.shown += some.length;
      byId("notes").replaceChildren(...(found.notes || []).map((note) => el("p", {}, note)));
      byId("count").textContent = query ? `${found.query}: ${found.total.toLocaleString("en")} ${found.total === 1 ? "picture" : "pictures"}` : "";
      byId("grid").append(...some.map((each) => el("li", {}, this.card(each))));
      byId("more").hidden = this.shown >= found.total;
    } catch (problem) {
      byId("count").textContent = "";
      byId("more").hidden = true;
      say(problem.message);
    }
  }

  card(each) {
    const wide = each.width || 4;
    const tall = each.height || 3;
    const picture = svg("svg", { viewBox: `0 0 ${wide} ${tall}`, preserveAspectRatio: "xMidYMid meet", "aria-hidden": "true" });
    if (each.photo) picture.append(svg("image", { href: `/api/images/${each.image}/photo?size=thumb`, width: wide, height: tall, preserveAspectRatio: each.width ? "none" : "xMidYMid slice" }));
    const best = each.matches?.[0];
    (best?.boxes || []).forEach((box, k) => {
      if (!box) return;
      const [x, y, x2, y2] = box;
      ["halo", "frame"].forEach((kind) => picture.append(svg("rect", { class: kind, x, y, width: x2 - x, height: y2 - y, stroke: kind === "frame" ? COLOURS[k % COLOURS.length] : null })));
    });
    const name = each.file || each.key;
    const card = el("button", { type: "button", class: "hit", "aria-label": `${name}${best ? `, ${best.labels.filter(Boolean).join(", ")}` : ""}` },
      picture, el("p", {}, el("span", { class: "name" }, name), best ? el("span", { class: "number" }, each.score.toFixed(2)) : null));
    card.addEventListener("click", () => this.detail(each, card));
    return card;
  }

  async detail(each, card) {
    gallery.all(".hit").forEach((other) => other.setAttribute("aria-current", String(other === card)));
    try {
      const { graph, drawing, colours, width, height, photo } = await askJson(`/api/images/${each.image}?drawing=true`);
      const editor = new BoxEditor({ editable: false });
      const facts = graph ? `${graph.objects.length} objects, ${graph.relations.length} relations` : "";
      const scene = new Scene(byId("browse-scene"), editor, { title: each.file || each.key, facts, find: this.library.search ? (triplet) => this.search(triplet) : null });
      const url = photo ? `/api/images/${each.image}/photo` : null;
      const boxes = (graph?.objects || []).map(({ box, label }, k) => ({ box, label, colour: colours[k] }));
      editor.show({ width: width || 4, height: height || 3, url }, boxes, graph?.relations || []);
      if (graph) scene.show(graph, drawing); else scene.none("Nothing is known of this picture yet: open it in Try, or predict the folder with scenegpi predict.");
      scene.element.tabIndex = -1;
      scene.element.focus({ preventScroll: true });
      scene.element.scrollIntoView({ block: "start" });
    } catch (problem) {
      say(problem.message);
    }
  }
}
