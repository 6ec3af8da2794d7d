// One picture of Browse, over the others: its graph, its tags, pictures like it, the next and the previous one.
import { BoxEditor } from "./boxes.js";
import { askJson, byId, el, say } from "./page.js";
import { Scene } from "./scene.js";

export class Viewer {
  constructor(browse) {
    this.browse = browse;
    this.dialog = byId("viewer");
    this.least = byId("viewer-least");
    this.dialog.addEventListener("cancel", (event) => { event.preventDefault(); browse.go({ picture: "" }); });
    this.dialog.addEventListener("close", () => { if (this.image !== undefined && browse.state.picture !== "") browse.go({ picture: "" }); });  // a browser may close it by itself
    byId("viewer-close").addEventListener("click", () => browse.go({ picture: "" }));
    byId("viewer-before").addEventListener("click", () => this.step(-1));
    byId("viewer-after").addEventListener("click", () => this.step(1));
    byId("viewer-similar").addEventListener("click", () => browse.go({ query: "", like: this.image, picture: "" }));
    byId("viewer-try").addEventListener("click", () => { location.hash = `try/${this.image}`; });
    byId("viewer-annotate").addEventListener("click", () => { location.hash = `annotate/${this.image}`; });
    this.least.addEventListener("input", () => this.apply());
    this.least.addEventListener("change", () => history.replaceState(null, "", `#${browse.address({ least: Number(this.least.value) })}`));
    byId("viewer-tags").addEventListener("change", () => this.tag());
    this.dialog.addEventListener("keydown", (event) => {
      if (event.target.closest("input, textarea, .box, .node, .pill") || event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key === "ArrowRight") this.step(1); else if (event.key === "ArrowLeft") this.step(-1); else return;
      event.preventDefault();
    });
  }

  close() {
    if (!this.dialog.open) return;
    this.dialog.close();
    byId("viewer-scene").replaceChildren();
    byId("grid").querySelector(`[data-image="${this.image}"]`)?.focus();
    this.image = undefined;
  }

  async open(image) {
    if (image === this.image) return;
    this.image = image;
    byId("viewer-status").textContent = "";
    if (!this.dialog.open) this.dialog.showModal();
    try {
      const about = await askJson(`/api/images/${image}?drawing=true`);
      if (image === this.image) this.show(about);
    } catch (problem) {
      if (image !== this.image) return;
      byId("viewer-title").textContent = "";
      byId("viewer-scene").replaceChildren();
      byId("viewer-status").textContent = problem.message;
    }
  }

  show(about) {
    const { browse } = this;
    const { graph, drawing, colours, width, height, photo, changed, tags, key, file } = about;
    this.about = about;
    const editor = new BoxEditor({ editable: false });
    const facts = graph ? `${graph.objects.length} objects, ${graph.relations.length} relations` : "";
    const find = browse.library.search ? (triplet) => browse.search(triplet) : null;
    const scene = new Scene(byId("viewer-scene"), editor, { find });
    byId("viewer-title").textContent = file || key;
    byId("viewer-facts").textContent = facts;
    byId("viewer-tags").value = tags.join(", ");
    byId("viewer-tags").parentElement.hidden = !browse.library.tags;
    byId("viewer-similar").hidden = !graph || !browse.library.search;
    byId("viewer-annotate").hidden = !browse.library.annotate;
    byId("viewer-try").hidden = !photo;
    this.scene = scene;
    this.graph = graph;
    const boxes = (graph?.objects || []).map(({ box, label }, k) => ({ box, label, colour: colours[k] }));
    editor.show({ width: width || 4, height: height || 3, url: photo ? `/api/images/${about.image}/photo` : null }, boxes, graph?.relations || []);
    if (graph) scene.show(graph, drawing); else scene.none(changed ? "This photo has changed since it was indexed: open it in Try, or predict and index it again." : "This picture has no graph yet: open it in Try, or predict its folder.");
    this.least.value = browse.state.least;
    this.least.parentElement.hidden = !graph;
    this.apply();
    this.steps();
  }

  // What scores less is hidden: boxes, relations on the photo, in the graph and in the list.
  apply() {
    const least = Number(this.least.value);
    byId("viewer-least-value").textContent = least.toFixed(2);
    if (!this.graph) return;
    const low = (each) => (each?.score ?? 1) < least;
    const boxes = this.graph.objects.map(low);
    const links = this.graph.relations.map((each) => low(each) || boxes[each.subject] || boxes[each.object]);
    const hide = (part, off) => part.classList.toggle("below", off);
    gallery.all("[data-box]", this.scene.element).forEach((part) => hide(part, boxes[Number(part.dataset.box)]));
    gallery.all("[data-link]", this.scene.element).forEach((part) => hide(part.closest("li") || part, part.dataset.link.split(" ").every((k) => links[Number(k)])));
  }

  place() { return this.browse.items.findIndex((each) => each.image === this.image); }

  // The neighbour in the list, or in all pictures where this one is not in the list.
  async neighbour(by) {
    const { browse } = this;
    const at = this.place();
    if (at < 0) return by > 0 ? this.about?.after : this.about?.before;
    if (!browse.items[at + by] && by > 0 && browse.items.length < browse.total) await browse.load();
    return browse.items[at + by]?.image;
  }

  steps() {
    if (!this.dialog.open) return;
    const { browse } = this;
    const at = this.place();
    const first = at < 0 ? (this.about?.before ?? null) === null : at === 0;
    const last = at < 0 ? (this.about?.after ?? null) === null : at + 1 >= browse.total;
    byId("viewer-before").disabled = first;
    byId("viewer-after").disabled = last;
    if (document.activeElement?.disabled) byId("viewer-close").focus();  // a button that is off hears no keys
  }

  async step(by) {
    const next = await this.neighbour(by);
    if (typeof next === "number") this.browse.go({ picture: next });
  }

  async tag() {
    const tags = byId("viewer-tags").value.split(",").map((tag) => tag.trim()).filter(Boolean);
    try {
      const kept = await askJson(`/api/images/${this.image}/tags`, { method: "PUT", body: { tags } });
      byId("viewer-tags").value = kept.tags.join(", ");
      byId("viewer-status").textContent = "Tags saved.";
      this.browse.facets.fill();
    } catch (problem) { byId("viewer-status").textContent = `Tags not saved: ${problem.message}`; say(problem.message); }
  }
}
