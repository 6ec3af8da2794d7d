// Annotate: the model proposes, the person accepts, corrects and adds. Every change is saved before the next.
import { Autosave } from "./autosave.js";
import { BoxEditor, boxOf, letterOf } from "./boxes.js";
import { askJson, bar, byId, el, say } from "./page.js";
import { Progress } from "./progress.js";

const PROPOSALS = 20;
const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#3D3D3D"];

export class Annotate {
  constructor(library) {
    this.library = library;
    this.progress = new Progress(library.total);
    this.saver = new Autosave((state) => this.saved(state));
    byId("annotate-lead").textContent = `${library.total.toLocaleString("en")} pictures of ${library.name}. Type two letters to relate two boxes, or accept a proposal.`;
    document.addEventListener("keydown", (event) => { if (!byId("annotate").hidden) this.key(event); });
  }

  async open(number) {
    try {
      await (this.listed ??= this.progress.list());
    } catch (problem) {
      this.listed = null;
      say(problem.message);
      return;
    }
    const image = number === "" ? this.progress.next(-1) ?? 0 : Number(number) || 0;
    if (image === this.image) return;
    await this.load(image);
  }

  saved({ kind, text, answer }) {
    byId("saved").textContent = text;
    byId("saved").classList.toggle("bad", kind === "waiting");
    if (answer) this.progress.meter(answer);
  }

  async load(image) {
    say("");
    this.image = image;
    this.progress.current(image);
    try {
      const [about, kept] = await Promise.all([askJson(`/api/images/${image}`), askJson(`/api/annotations/${image}`)]);
      if (image !== this.image) return;
      this.predicates = kept.predicates;
      const pending = this.saver.begin(image, kept);
      const graph = pending?.graph || kept.graph || about.graph;
      const objects = graph?.objects || [];
      // What the data already says is where annotation starts; boxes without relations of a photo are the model's to find.
      this.now = {
        boxes: objects.map(({ box, label }, k) => ({ box, label, typed: true, colour: PALETTE[k % PALETTE.length] })),
        relations: (graph?.relations || []).map(({ subject, predicate, object }) => ({ subject, predicate, object })),
        done: pending?.done ?? kept.done,
      };
      this.past = [];
      this.future = [];
      this.build(about, kept.objects);
      this.propose();
    } catch (problem) {
      say(problem.message);
    }
  }

  build({ width, height, photo, file, key }, names) {
    this.editor = new BoxEditor({
      letters: true, names,
      changed: (kind, at) => this.boxesChanged(kind, at),
      chosen: () => this.pick(-1),
    });
    this.accepted = el("ol", { class: "list" });
    this.proposals = el("ol", { class: "list" });
    this.chances = el("div", { class: "alternatives", "aria-live": "polite" });
    this.doneButton = el("button", { type: "button", class: "button strong" }, "Done, next");
    this.doneButton.addEventListener("click", () => this.finish());
    this.undoButton = el("button", { type: "button", class: "button" }, "Undo");
    this.undoButton.addEventListener("click", () => this.undo());
    const predicate = el("datalist", { id: "predicates" }, ...this.predicates.map((name) => el("option", { value: name })));
    this.predicate = el("input", { type: "text", list: "predicates", "aria-label": "Predicate of the chosen relation", placeholder: "predicate" });
    this.predicate.addEventListener("change", () => this.relabel(this.predicate.value.trim()));
    this.predicate.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { this.relabel(this.predicate.value.trim()); this.predicate.blur(); }
      if (event.key === "Escape") this.predicate.blur();
      event.stopPropagation();
    });
    this.title = el("h3", {}, file || key);
    byId("annotate-scene").replaceChildren(el("article", { class: "scene current" },
      el("header", {}, this.title, el("p", { class: "facts" }, this.undoButton, " ", this.doneButton)),
      el("div", { class: "work" },
        el("div", {}, this.editor.figure, this.editor.tools),
        el("div", {},
          el("section", { class: "panel" }, el("h4", {}, "Relations"), this.accepted, el("div", { class: "tools" }, this.predicate, predicate), this.chances),
          el("section", { class: "panel" }, el("h4", {}, "Proposals"), this.proposals)))));
    this.choice = -1;
    this.subject = -1;
    this.editor.show({ width: width || 4, height: height || 3, url: photo ? `/api/images/${this.image}/photo` : null }, this.now.boxes);
    this.draw();
  }

  // A person's change: the state before it can be brought back, the state after it is saved.
  change(next) {
    this.past.push(this.now);
    this.future = [];
    this.set(next);
  }

  set(next) {
    this.now = next;
    if (this.editor.boxes !== next.boxes) this.editor.show(this.editor.image, next.boxes);
    this.draw();
    this.progress.mark(this.image, next.done);
    this.saver.save(this.image, { graph: this.graph(), done: next.done });
  }

  undo() { if (this.past.length) { this.future.push(this.now); this.set(this.past.pop()); this.propose(); } }
  redo() { if (this.future.length) { this.past.push(this.now); this.set(this.future.pop()); this.propose(); } }

  graph() {
    const named = this.now.boxes.map(({ label }) => label);
    const objects = [...new Set(named)];
    const predicates = [...new Set(this.now.relations.map(({ predicate }) => predicate))];
    return {
      image: { width: this.editor.image.width, height: this.editor.image.height },
      vocabulary: { name: "", objects, predicates },
      objects: this.now.boxes.map(({ box, label }) => ({ box, label })),
      relations: this.now.relations,
    };
  }

  boxesChanged(kind, at) {
    let { relations } = this.now;
    if (kind === "deleted") {
      const after = (k) => (k > at ? k - 1 : k);
      relations = relations.filter(({ subject, object }) => subject !== at && object !== at)
        .map((each) => ({ ...each, subject: after(each.subject), object: after(each.object) }));
    }
    const boxes = this.editor.boxes.map((each, k) => ({ ...each, colour: each.colour || PALETTE[k % PALETTE.length] }));
    if (boxes.some(({ label }) => !label)) {  // saved once it has a name: a box without one says nothing
      this.editor.boxes = boxes;
      this.editor.input.focus();
      return;
    }
    this.change({ ...this.now, boxes, relations });
    this.propose();
  }

  // What the model makes of these boxes: the best relations of the image, and the likeliest predicates of each pair.
  propose() {
    this.pairs = new Map();
    this.offered = null;
    this.asked = this.ask();
    this.draw();
  }

  async ask() {
    const { image } = this;
    const { boxes } = this.now;
    let offered = [];
    try {
      const body = { image, alternatives: 5, top: 100, min_relation: 0 };
      if (boxes.length) Object.assign(body, { boxes: boxes.map(({ box }) => box), labels: boxes.map(({ label }) => label), width: this.editor.image.width, height: this.editor.image.height });
      const { graph, kept, pairs } = await askJson("/api/predict", { method: "POST", body });
      if (image !== this.image || boxes !== this.now.boxes) return;
      if (!boxes.length) { this.offer(graph); return; }
      const known = new Set(this.predicates);
      // The person says that they are related; what is left to say is how.
      const own = ({ predicates, related }) => predicates.filter(([name]) => known.has(name)).map(([name, share]) => [name, share / (related || 1)]);
      pairs.forEach((pair) => this.pairs.set(`${kept[pair.subject]} ${kept[pair.object]}`, own(pair)));
      offered = graph.relations.map((each) => ({ ...each, subject: kept[each.subject], object: kept[each.object] }))
        .filter(({ predicate }) => known.has(predicate)).slice(0, PROPOSALS);
    } catch (problem) {
      if (image !== this.image || boxes !== this.now.boxes) return;
      if (boxes.length > 1) say(problem.message);
      else if (!boxes.length) say(`${problem.message}. Draw the boxes: drag on the photo, or press “Add box”.`);
    }
    this.offered = offered;
    this.draw();
  }

  // Boxes of a photo that had none: the finder's, as a first state.
  offer(graph) {
    const names = new Set([...this.editor.list.children].map((option) => option.value));
    const boxes = graph.objects.filter(({ label }) => names.has(label)).map(({ box, label }, k) => ({ box, label, typed: true, colour: PALETTE[k % PALETTE.length] }));
    this.offered = [];
    if (boxes.length) { this.change({ ...this.now, boxes }); this.propose(); } else this.draw();
  }

  name(k) { return `${letterOf(k)} ${this.now.boxes[k].label}`; }
  has({ subject, object, predicate }) { return this.now.relations.findIndex((each) => each.subject === subject && each.object === object && each.predicate === predicate); }

  draw() {
    const words = ({ subject, predicate, object }) => el("span", { class: "words" }, this.name(subject), " ", el("em", {}, predicate), " ", this.name(object));
    this.accepted.replaceChildren(...this.now.relations.map((each, k) => {
      const row = el("button", { type: "button", class: "relation", "aria-current": String(k === this.choice) }, words(each));
      row.addEventListener("click", () => this.pick(k));
      return el("li", {}, row);
    }));
    if (!this.now.relations.length) this.accepted.append(el("li", { class: "none" }, "None yet."));
    const open = (this.offered || []).filter((each) => this.has(each) < 0 && each.subject < this.now.boxes.length && each.object < this.now.boxes.length);
    const focused = [...this.proposals.querySelectorAll("button")].indexOf(document.activeElement);
    this.proposals.replaceChildren(...open.map((each) => {
      const row = el("button", { type: "button", class: "proposal" }, words(each), el("span", { class: "score" }, each.score.toFixed(2)));
      row.addEventListener("click", () => this.relate(each.subject, each.object, each.predicate));
      row.addEventListener("focus", () => this.light(each.subject, each.object));
      row.addEventListener("pointerenter", () => this.light(each.subject, each.object));
      return el("li", {}, row);
    }));
    const none = !this.offered ? "Asking the model…" : this.now.boxes.length > 1 ? "None left." : "Two boxes are needed.";
    if (!open.length) this.proposals.append(el("li", { class: "none" }, none));
    if (focused >= 0) this.proposals.querySelectorAll("button")[Math.min(focused, open.length - 1)]?.focus();
    this.undoButton.disabled = !this.past.length;
    this.alternatives();
  }

  light(...boxes) {
    gallery.all("[data-box]", this.editor.drawing).forEach((part) => part.classList.toggle("on", boxes.includes(Number(part.dataset.box))));
    this.editor.figure.closest(".scene").classList.toggle("lit", boxes.length > 0);
  }

  pick(k) {
    this.choice = k;
    const chosen = this.now.relations[k];
    if (chosen) this.light(chosen.subject, chosen.object); else this.light();
    this.draw();
    this.accepted.children[k]?.scrollIntoView({ block: "nearest" });
  }

  alternatives() {
    const chosen = this.now.relations[this.choice];
    this.predicate.hidden = !chosen;
    if (document.activeElement !== this.predicate) this.predicate.value = chosen?.predicate || "";
    const others = chosen ? this.pairs?.get(`${chosen.subject} ${chosen.object}`) || [] : [];
    this.chances.replaceChildren(el("ol", {}, ...others.map(([name, share], k) => bar(name, share, [el("kbd", {}, String(k + 1)), " "]))));
  }

  // Two keys: by the likeliest predicate, for which a quick typist waits.
  async relatePair(subject, object) {
    const { boxes } = this.now;
    await this.asked;
    if (boxes === this.now.boxes) this.relate(subject, object, this.pairs.get(`${subject} ${object}`)?.[0]?.[0] || this.predicates[0]);
  }

  relate(subject, object, predicate) {
    const there = this.has({ subject, object, predicate });
    if (there >= 0) { this.pick(there); return; }
    this.choice = this.now.relations.length;
    this.change({ ...this.now, relations: [...this.now.relations, { subject, predicate, object }] });
    this.light(subject, object);
    this.accepted.lastElementChild.scrollIntoView({ block: "nearest" });
  }

  relabel(predicate) {
    const chosen = this.now.relations[this.choice];
    if (!chosen || chosen.predicate === predicate) return;
    if (!this.predicates.includes(predicate)) { say(`“${predicate}” is not among the predicates.`); return; }
    say("");
    if (this.has({ ...chosen, predicate }) >= 0) return;
    this.change({ ...this.now, relations: this.now.relations.map((each, k) => (k === this.choice ? { ...each, predicate } : each)) });
  }

  removeRelation() {
    if (this.choice < 0) return;
    const relations = this.now.relations.filter((_, k) => k !== this.choice);
    this.choice = -1;
    this.change({ ...this.now, relations });
    this.light();
  }

  finish() {
    this.change({ ...this.now, done: true });
    const next = this.progress.next(this.image);
    if (next !== undefined) location.hash = `annotate/${next}`; else say("All pictures are done.");
  }

  markSubject(k) {
    this.subject = k;
    this.editor.subject = k;
    gallery.all(".box", this.editor.drawing).forEach((part) => part.classList.toggle("subject", Number(part.dataset.box) === k));
    if (k >= 0) this.light(k);
  }

  key(event) {
    if (!this.now || event.target.closest("input, select, textarea, summary")) return;
    const command = event.ctrlKey || event.metaKey;
    const rows = [...this.proposals.querySelectorAll("button")];
    const at = rows.indexOf(document.activeElement);
    const letter = !command && !event.altKey && event.key.length === 1 ? boxOf(event.key) : -1;
    if (command && event.key === "Enter") this.finish();
    else if (command && event.key.toLowerCase() === "z") { if (event.shiftKey) this.redo(); else this.undo(); }
    else if (command && event.key.toLowerCase() === "y") this.redo();
    else if (command || event.altKey) return;
    else if (event.key === "Escape") { this.markSubject(-1); this.pick(-1); }
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !event.target.closest(".box, .thumb") && rows.length) rows[(at + (event.key === "ArrowDown" ? 1 : rows.length - 1) + (at < 0 && event.key === "ArrowUp" ? 1 : 0)) % rows.length].focus();
    else if (/^[1-5]$/.test(event.key)) {
      const chosen = this.now.relations[this.choice];
      const name = chosen && this.pairs?.get(`${chosen.subject} ${chosen.object}`)?.[Number(event.key) - 1]?.[0];
      if (name) this.relabel(name);
    } else if ((event.key === "Delete" || event.key === "Backspace") && !event.target.closest(".box")) this.removeRelation();
    else if (letter >= 0 && letter < this.now.boxes.length) {
      if (this.subject < 0) this.markSubject(letter);
      else {
        const { subject } = this;
        this.markSubject(-1);
        if (subject !== letter) this.relatePair(subject, letter);
      }
    } else return;
    event.preventDefault();
  }
}
