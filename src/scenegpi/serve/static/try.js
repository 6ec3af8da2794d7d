// Try: a photo, boxes, the graph of the model, at once.
import { BoxEditor } from "./boxes.js";
import { useByApi } from "./apiuse.js";
import { ask, askJson, byId, decoded, el, save, say, thumbnail } from "./page.js";
import { droppedFiles } from "./run.js";
import { Scene } from "./scene.js";

const MOST = 1600;
const PAGE = 60;
const CONTROLS = { model: "", informative: "0.3", top: "20" };

export class Try {
  constructor(library, run) {
    Object.assign(this, { library, run });
    this.models = [];
    this.turn = this.listed = 0;
    this.editor = new BoxEditor({ changed: () => this.changed() });
    this.past = [];
    this.future = [];
    this.wire();
    this.filled = this.fill().catch((problem) => say(problem.message));
  }

  async fill() {
    const { models } = await askJson("/api/models");
    this.models = models;
    byId("model").append(...models.map(({ name, photos }) => el("option", { value: name }, `${name}${photos ? " (uses the photo)" : ""}`)));
    if (this.library.model) byId("model").value = this.library.model;
    this.name();
    byId("try-more").addEventListener("click", () => this.more().catch((problem) => say(problem.message)));
    if (this.library.total) await this.more();
  }

  async more() {
    const strip = byId("try-strip");
    const { images, total } = await askJson(`/api/images?limit=${PAGE}&offset=${this.listed}`);
    this.listed += images.length;
    byId("try-more").hidden = this.listed >= total;
    strip.append(...images.filter((each) => each.photo).map((each) => {
      const thumb = el("button", { type: "button", class: "thumb", "aria-label": each.file || each.key, "data-image": each.image }, thumbnail(each));
      thumb.addEventListener("click", () => { location.hash = `try/${each.image}`; });
      return thumb;
    }));
    gallery.roving([...strip.children]);
    this.current();
  }

  current() { gallery.all(".thumb", byId("try-strip")).forEach((thumb) => thumb.setAttribute("aria-current", String(Number(thumb.dataset.image) === this.source?.image))); }

  // What the address says: #try/the number of a picture?model=vg150-photo&informative=0.5&top=10
  async open(address) {
    const [path, search = ""] = address.split("?");
    const number = decoded(path);
    const image = Math.floor(Number(number));
    if (number === "" || !(image >= 0) || image === this.source?.image) return;
    await this.filled;
    Object.entries(CONTROLS).forEach(([name, value]) => { byId(name).value = new URLSearchParams(search).get(name) ?? (name === "model" ? this.library.model : null) ?? value; });
    byId("informative-value").textContent = Number(byId("informative").value).toFixed(2);
    this.name();
    this.fromLibrary(image).catch((problem) => {
      this.nothing();
      say(problem.message);
    });
  }

  // The address follows what is chosen; a photo of one's own has none.
  address() {
    if (this.source?.image === undefined) return;
    const chosen = Object.entries(CONTROLS).filter(([name, value]) => byId(name).value !== value && !(name === "model" && byId(name).value === this.library.model));
    const params = new URLSearchParams(chosen.map(([name]) => [name, byId(name).value]));
    history.replaceState(null, "", `#try/${this.source.image}${params.size ? `?${params}` : ""}`);
  }

  nothing() {
    this.turn += 1;
    this.source = this.scene = this.graph = null;
    byId("try-scene").replaceChildren();
    byId("drop").classList.remove("small");
    byId("try-api").hidden = true;
    this.current();
  }

  wire() {
    this.back = this.editor.button("Undo", () => this.undo(), "Ctrl Z");
    this.forth = this.editor.button("Redo", () => this.undo(this.future, this.past), "Ctrl Y");
    this.editor.add.before(el("div", { class: "group", role: "group", "aria-label": "Changes" }, this.back, this.forth));
    document.addEventListener("keydown", (event) => {
      const key = event.key.toLowerCase();
      if (byId("try").hidden || !(event.ctrlKey || event.metaKey) || !"zy".includes(key) || event.target.closest("input, select, textarea")) return;
      event.preventDefault();
      if (key === "y" || event.shiftKey) this.undo(this.future, this.past); else this.undo();
    });
    byId("file").addEventListener("change", (event) => { if (event.target.files[0]) this.fromFile(event.target.files[0]); });
    const drop = byId("drop");
    const over = (on) => (event) => { event.preventDefault(); drop.classList.toggle("over", on); };
    ["dragenter", "dragover"].forEach((kind) => byId("try").addEventListener(kind, over(true)));
    byId("try").addEventListener("dragleave", over(false));
    byId("try").addEventListener("drop", async (event) => {
      over(false)(event);
      const files = await droppedFiles(event.dataTransfer);
      if (files.length > 1 && this.library.predict) { location.hash = "browse"; this.run.take(files); return; }
      const file = files.find((each) => each.type.startsWith("image/"));
      if (file) this.fromFile(file); else say("That is not a picture file.");
    });
    byId("model").addEventListener("change", () => { this.name(); this.address(); this.predict(); });
    byId("informative").addEventListener("input", (event) => {
      byId("informative-value").textContent = Number(event.target.value).toFixed(2);
      this.address();
      this.predict();
    });
    byId("top").addEventListener("change", () => { this.address(); this.predict(); });
    byId("try-api").addEventListener("click", () => {
      const { photo, ...body } = this.request();
      useByApi({ path: "/api/predict", body, file: photo ? this.title : null });
    });
  }

  // The labels that can be chosen from: the model's, or those of all.
  name() {
    const chosen = this.models.filter(({ name }) => !byId("model").value || name === byId("model").value);
    this.editor.setNames([...new Set(chosen.flatMap(({ objects }) => objects))].sort());
  }

  async fromFile(file) {
    say("");
    const url = URL.createObjectURL(file);
    const picture = new Image();
    picture.src = url;
    try {
      await picture.decode();
    } catch {
      say(`${file.name} cannot be read as an image.`);
      return;
    }
    const { naturalWidth: width, naturalHeight: height } = picture;
    const scale = Math.min(1, MOST / Math.max(width, height));
    const canvas = el("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    const photo = canvas.toDataURL("image/jpeg", 0.92).split(",")[1];
    if (location.hash !== "#try") history.replaceState(null, "", "#try");  // a file of one's own has no address
    this.start({ photo }, { width, height, url }, [], file.name);
  }

  async fromLibrary(number) {
    say("");
    const { width, height, graph, file, key } = await askJson(`/api/images/${number}`);
    const boxes = (graph?.objects || []).map(({ box, attributes }) => ({ box, attributes, label: null, typed: false, colour: null }));
    const own = this.kept(number);
    this.start({ image: number }, { width, height, url: `/api/images/${number}/photo` }, own || boxes, file || key);
    if (own) { this.past = [boxes]; this.steps(); }
  }

  start(source, image, boxes, title) {
    Object.assign(this, { source, title, boxes, past: [], future: [] });
    this.editor.choice = -1;
    this.scene = new Scene(byId("try-scene"), this.editor, { title });
    byId("drop").classList.add("small");
    byId("try-api").hidden = false;
    this.downloads();
    this.scene.none("Asking the model…");
    this.editor.show(image, boxes, []);
    this.editor.choose(-1);
    this.current();
    this.steps();
    this.predict();
  }

  // A person's change can be undone, and is there again when the page is loaded anew.
  changed() {
    this.past.push(this.boxes);
    this.future = [];
    this.keep();
    this.predict();
  }

  undo(from = this.past, to = this.future) {
    if (!this.scene || !from.length) return;
    to.push(this.editor.boxes);
    this.editor.show(this.editor.image, from.pop(), []);
    this.editor.choose(-1);
    this.keep();
    this.predict();
  }

  steps() { this.back.disabled = !this.past.length; this.forth.disabled = !this.future.length; }
  shelf(image) { return `scenegpi-try:${this.library.id}:${image}`; }
  kept(image) { try { return JSON.parse(sessionStorage.getItem(this.shelf(image))); } catch { return null; } }

  keep() {
    this.boxes = this.editor.boxes;
    this.steps();
    if (this.source.image === undefined) return;
    try {
      if (this.past.length) sessionStorage.setItem(this.shelf(this.source.image), JSON.stringify(this.boxes)); else sessionStorage.removeItem(this.shelf(this.source.image));
    } catch { /* full, or none: it is here as long as the page is */ }
  }

  request() {
    const { width, height } = this.editor.image;
    const { boxes } = this.editor;
    const body = { ...this.source, alternatives: 5, drawing: true, informative: Number(byId("informative").value), top: Number(byId("top").value) || 20 };
    if (byId("model").value) body.model = byId("model").value;
    if (!boxes.length) return body;
    const labels = boxes.map(({ label, typed }) => (typed ? label : null));
    Object.assign(body, { boxes: boxes.map(({ box }) => box), width, height });
    if (labels.some((label) => label !== null)) body.labels = labels;
    return body;
  }

  // At once, and while an answer is waited for only the newest state is asked for next; an answer that comes late is dropped.
  async predict() {
    if (!this.scene) return;
    this.turn += 1;
    if (this.asking) return;
    this.asking = true;
    for (let asked = 0; asked !== this.turn && this.scene;) {
      asked = this.turn;
      await this.answer(asked);
    }
    this.asking = false;
  }

  async answer(turn) {
    const body = this.request();
    this.scene.element.classList.add("waiting");
    try {
      const found = await askJson("/api/predict", { method: "POST", body });
      if (turn !== this.turn) return;
      say("");
      this.take(found);
      this.attend(turn);
    } catch (problem) {
      if (turn !== this.turn) return;
      say(problem.message);
      this.graph = null;
      this.scene.none(this.editor.boxes.length ? "" : "No boxes were found for this photo. Draw them: drag on the photo, or press “Add box”.");
    } finally {
      if (turn === this.turn) this.scene.element.classList.remove("waiting");
    }
  }

  take({ graph, kept, colours, drawing, pairs, model, notes, photo_read: read }) {
    const { image, boxes } = this.editor;
    const scale = boxes.length ? 1 : image.width / (graph.image.width || image.width);
    const next = boxes.length ? boxes.map((each) => ({ ...each, colour: "#3D3D3D" })) : [];
    graph.objects.forEach((each, k) => {
      const at = boxes.length ? kept[k] : k;
      const before = boxes[at] || { typed: false };
      if (before.attributes) each.attributes = before.attributes;
      next[at] = { ...before, box: before.box || each.box.map((value) => value * scale), label: before.typed ? before.label : each.label, colour: colours[k] };
    });
    this.graph = graph;
    this.graph.image = { ...graph.image, file: this.title };
    const partly = kept.length < next.length;
    this.editor.show(image, next, graph.relations.map((each) => ({ ...each, subject: boxes.length ? kept[each.subject] : each.subject, object: boxes.length ? kept[each.object] : each.object })));
    this.boxes = this.editor.boxes;
    if (this.editor.choice >= 0 && document.activeElement !== this.editor.input) this.editor.choose(this.editor.choice, false);
    this.scene.facts.textContent = [`model ${model}`, read ? "used the photo" : "", ...notes].filter(Boolean).join(" · ");
    if (partly) this.renumber(kept);
    this.scene.show(graph, drawing, pairs);
    if (partly) this.renumber(kept, true);
    this.scene.extra.hidden = false;
  }

  // Where boxes were left out, the graph counts only those that were kept: parts of the photo follow its numbers.
  renumber(kept, back = false) {
    gallery.all("[data-box]", this.editor.drawing).forEach((part) => {
      if (back) { part.dataset.box = part.dataset.place; return; }
      part.dataset.place = part.dataset.box;
      part.dataset.box = kept.indexOf(Number(part.dataset.box));
    });
  }

  async attend(turn) {
    if (!this.graph || this.graph.objects.length < 2) return;
    try {
      const found = await askJson("/api/attention", { method: "POST", body: this.request() });
      if (turn === this.turn && found.nodes.length === this.graph.objects.length) this.scene.attend(found);
    } catch { /* a model without attention */ }
  }

  downloads() {
    const buttons = ["json", "png", "graphml"].map((format) => {
      const button = el("button", { type: "button", class: "button" }, { json: "JSON", png: "PNG", graphml: "GraphML" }[format]);
      button.addEventListener("click", () => this.download(format));
      return button;
    });
    this.scene.extra.replaceChildren(el("h3", {}, "Download"), el("div", { class: "downloads" }, ...buttons));
    this.scene.extra.hidden = true;
  }

  async download(format) {
    if (!this.graph) return;
    const body = { graph: this.graph, format, ...(format === "png" ? this.source : {}) };
    try {
      const response = await ask("/api/draw", { method: "POST", body });
      save(await response.blob(), `${this.title.replace(/\.\w+$/, "") || "graph"}.${format}`);
    } catch (problem) {
      say(problem.message);
    }
  }
}
