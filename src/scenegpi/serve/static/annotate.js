// Annotate: the model proposes, the person accepts, corrects and adds. Every change is saved before the next.
import { Autosave } from "./autosave.js";
import { BoxEditor, boxOf } from "./boxes.js";
import { BoxList } from "./boxlist.js";
import { Conflict } from "./conflict.js";
import { askJson, byId, decoded, described, el, say } from "./page.js";
import { Progress } from "./progress.js";
import { Proposals } from "./proposals.js";
import { Relations } from "./relations.js";
import { Review } from "./review.js";

const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#3D3D3D"];
const plainBox = ({ box, label, attributes }, k) => ({ box, label, attributes, typed: true, colour: PALETTE[k % PALETTE.length] });
const sure = (score) => score === undefined || score >= 1;

export class Annotate {
  constructor(library) {
    this.library = library;
    this.now = null;
    this.progress = new Progress(library.total);
    this.saver = new Autosave(library.id, () => this.told());
    this.editor = new BoxEditor({
      letters: true,
      changed: (kind, at) => this.boxesChanged(kind, at),
      chosen: (k) => { this.relations.pick(-1); if (k >= 0) this.light(k); },
      related: (subject, object) => this.relatePair(subject, object),
      accept: (name) => this.accept("objects", name),
    });
    this.relations = new Relations(this);
    this.proposals = new Proposals(this);
    this.boxlist = new BoxList(this);
    this.review = new Review(this);
    this.conflict = new Conflict(this);
    byId("annotate-canvas").append(this.editor.figure, this.editor.tools);
    byId("annotate-panel").append(this.relations.element, this.proposals.element, this.boxlist.element, this.review.element);
    byId("undo").addEventListener("click", () => this.undo());
    byId("redo").addEventListener("click", () => this.redo());
    byId("done").addEventListener("click", () => this.finish());
    byId("before").addEventListener("click", () => this.step(-1));
    byId("after").addEventListener("click", () => this.step(1));
    byId("find-boxes").addEventListener("click", () => this.find(true));
    ["export-status", "export-test"].forEach((id) => byId(id).addEventListener("change", () => this.exports()));
    byId("next-order").hidden = !library.search;
    byId("import").addEventListener("change", (event) => this.exchange(event.target, "import"));
    byId("agreement").addEventListener("change", (event) => this.exchange(event.target, "agreement"));
    this.exports();
    document.addEventListener("keydown", (event) => { if (!byId("annotate").hidden) this.pressed(event); });
    this.editor.drawing.addEventListener("pointerover", (event) => {
      const k = event.target.closest("[data-box]")?.dataset.box;
      if (k !== undefined) this.light(Number(k)); else this.rest();
    });
    this.editor.drawing.addEventListener("pointerleave", () => this.rest());
    this.empty("");
  }

  async open(address) {
    try {
      await (this.listed ??= this.progress.refresh());
      const number = decoded(address);
      let image = Math.floor(Number(number));
      if (number === "" || !(image >= 0)) image = (await this.next(-1)) ?? 0;
      if (image === this.image && this.now) return;
      await this.load(image);
    } catch (problem) {
      this.listed = null;
      this.empty(problem.message);
    }
  }

  async next(after) { return (await askJson(`/api/next?after=${after}&order=${byId("next-order").value}`)).image; }

  // Nothing can be changed, for nothing of a picture is there.
  empty(why) {
    this.now = null;
    this.image = undefined;
    this.title("");
    this.editor.show({ width: 4, height: 3, url: null }, [], []);
    this.editor.choose(-1, false);
    [this.relations, this.proposals, this.boxlist, this.review, this.conflict].forEach((part) => part.clear());
    byId("annotate").classList.add("nothing");
    byId("annotate-why").replaceChildren(why ? el("p", {}, why) : "");
    this.buttons();
  }

  async load(image) {
    say("");
    this.empty("");
    this.image = image;
    let about;
    let kept;
    try {
      [about, kept] = await Promise.all([askJson(`/api/images/${image}`), askJson(`/api/annotations/${image}`)]);
    } catch (problem) {
      if (image !== this.image) return;
      this.empty(problem.message);
      const again = el("button", { type: "button", class: "button" }, "Try again");
      again.addEventListener("click", () => this.load(image));
      byId("annotate-why").append(again);
      return;
    }
    if (image !== this.image) return;
    this.progress.show(image, about.place).catch((problem) => say(problem.message));
    byId("annotate").classList.remove("nothing");
    byId("annotate-why").replaceChildren();
    Object.assign(this, { about, kept, key: kept.key, predicates: kept.predicates });
    this.editor.setNames(kept.objects);
    const own = this.saver.begin(image, kept);
    this.start(own ? own.state : kept.graph ? kept : this.fromData(about.graph));
    this.title(about.file || kept.key);
    if (own?.conflict) this.conflict.show();
  }

  // What the data says is where annotation starts: what it is not sure of is marked as a model's, or proposed.
  fromData(graph) {
    if (!graph) return { graph: { objects: [], relations: [] }, machine: [], status: undefined };
    return {
      graph: { ...graph, relations: graph.relations.filter(({ factors, score }) => sure(factors ? factors[2] : score)) },
      machine: graph.objects.flatMap(({ score }, k) => (sure(score) ? [] : [k])),
      status: undefined,
    };
  }

  start({ graph, machine = [], status, by = "", comment = "" }) {
    this.now = {
      boxes: graph.objects.map((each, k) => ({ ...plainBox(each, k), machine: machine.includes(k) })),
      relations: graph.relations.map(({ subject, predicate, object }) => ({ subject, predicate, object })),
      status, comment,
    };
    this.past = [];
    this.future = [];
    const { width, height, photo } = this.about;
    this.relations.pick(-1, false);
    this.editor.show({ width: width || 4, height: height || 3, url: photo ? `/api/images/${this.image}/photo` : null }, this.now.boxes, this.now.relations);
    this.draw();
    this.review.load(by);
    if (!this.now.boxes.length && status === undefined) this.find(false); else this.proposals.ask();
  }

  title(text) { byId("annotate-name").textContent = text; }

  // A person's change: the state before it can be brought back, the state after it is saved.
  change(next) {
    if (!this.now) return;
    this.past.push(this.now);
    this.future = [];
    this.set(next);
  }

  set(next) {
    const boxes = next.boxes !== this.now.boxes;
    this.now = { ...next, status: next.status || "begun" };
    this.editor.show(this.editor.image, this.now.boxes, this.now.relations);
    this.draw();
    this.progress.mark(this.image, this.key, this.now.status);
    this.saver.save(this.image, this.key, this.state());
    if (boxes) this.proposals.ask();
  }

  undo() { if (this.now && this.past.length) { this.future.push(this.now); this.set(this.past.pop()); } }
  redo() { if (this.now && this.future.length) { this.past.push(this.now); this.set(this.future.pop()); } }

  // As it is saved: boxes that have no name yet are not, and the page says so.
  state() {
    const { boxes, relations, status, comment } = this.now;
    const place = new Map();
    boxes.forEach(({ label }, k) => { if (label) place.set(k, place.size); });
    const named = boxes.filter(({ label }) => label);
    const links = relations.filter(({ subject, object }) => place.has(subject) && place.has(object));
    return {
      graph: {
        image: { width: this.editor.image.width, height: this.editor.image.height },
        vocabulary: { name: "", objects: [...new Set(named.map(({ label }) => label))], predicates: [...new Set(links.map(({ predicate }) => predicate))] },
        objects: named.map(({ box, label, attributes }) => ({ box, label, ...(described(attributes).length ? { attributes } : {}) })),
        relations: links.map(({ subject, predicate, object }) => ({ subject: place.get(subject), predicate, object: place.get(object) })),
      },
      status, comment,
      machine: named.flatMap(({ machine }, k) => (machine ? [k] : [])),
      by: this.review.by,
    };
  }

  unnamed() { return this.now ? this.now.boxes.flatMap(({ label }, k) => (label ? [] : [k])) : []; }

  // What the saver has to say: a message stays until what it is about is solved.
  told() {
    if (!this.saver) return;
    const { saver } = this;
    const open = saver.unsaved();
    const own = this.key === undefined ? [] : saver.of(this.key);
    const bare = this.unnamed().map((k) => this.letter(k)).join(", ");
    const stuck = own.find(({ problem }) => problem)?.problem;
    let text = "";
    if (own.some(({ conflict }) => conflict)) text = "Not saved: changed elsewhere. Choose below.";
    else if (stuck) text = `Not saved: ${stuck}`;
    else if (own.length) text = saver.waiting ? `Not saved yet: ${saver.waiting}. Trying again.` : "Saving…";
    else if (bare) text = `Not saved: box ${bare} has no name.`;
    else if (saver.revisions.get(this.key)) text = "Saved";
    byId("saved").textContent = text;
    byId("saved").classList.toggle("bad", text.startsWith("Not"));
    if (saver.answer) this.progress.meter(saver.answer);
    if (this.now && own.some(({ conflict, loose }) => conflict && !loose)) this.conflict.show();
    const rest = [...new Map(open.filter(({ key }) => key !== this.key).map((entry) => [entry.key, entry])).values()];
    byId("unsaved").hidden = !rest.length;
    byId("unsaved-list").replaceChildren(...rest.map(({ image, key, problem, conflict }) => el("li", {},
      el("a", { href: `#annotate/${image}` }, key), ` ${conflict ? "changed elsewhere" : problem || "not sent yet"}`)));
  }

  boxesChanged(kind, at) {
    if (!this.now) return;
    let { relations } = this.now;
    if (kind === "deleted") {
      const after = (k) => (k > at ? k - 1 : k);
      relations = relations.filter(({ subject, object }) => subject !== at && object !== at)
        .map((each) => ({ ...each, subject: after(each.subject), object: after(each.object) }));
    }
    const boxes = this.editor.boxes.map((each, k) => ({ ...each, colour: each.colour || PALETTE[k % PALETTE.length], machine: kind !== "deleted" && k === at ? false : each.machine }));
    this.change({ ...this.now, boxes, relations });
  }

  // A photo without boxes: those of the finder, marked as a machine's; they are saved with the first change.
  async find(asked) {
    if (!this.now) return;
    const { image, now } = this;
    this.proposals.wait();
    try {
      const { graph } = await askJson("/api/predict", { method: "POST", body: { image, top: 0 } });
      if (image !== this.image || now !== this.now) return;
      const known = new Set(this.kept.objects);
      const boxes = graph.objects.filter(({ label }) => known.has(label)).map((each, k) => ({ ...plainBox(each, now.boxes.length + k), machine: true }));
      const next = { ...now, boxes: [...now.boxes, ...boxes] };
      if (asked && boxes.length) { this.change(next); return; }
      this.now = next;
      this.editor.show(this.editor.image, next.boxes, next.relations);
    } catch (problem) {
      if (image !== this.image || now !== this.now) return;
      say(`${problem.message}. Draw the boxes: drag on the photo, or press “Add box”.`);
    }
    this.draw();
    this.proposals.ask();
  }

  // A name that is not in the vocabulary is offered to be added to it.
  async accept(kind, name) {
    const known = kind === "objects" ? this.kept.objects : this.predicates;
    if (known.includes(name)) return true;
    if (!await this.review.askName(kind, name)) return false;
    try {
      const all = await askJson("/api/names", { method: "POST", body: { [kind]: [name] } });
      this.kept.objects = all.objects;
      this.predicates = all.predicates;
      this.editor.setNames(all.objects);
      this.relations.setNames();
      return true;
    } catch (problem) {
      say(problem.message);
      return false;
    }
  }

  letter(k) { return this.editor.labels?.[k]?.split(" ")[0] || String(k + 1); }
  name(k) { return this.editor.labels?.[k] || this.now.boxes[k]?.label || "?"; }
  has({ subject, object, predicate }) { return this.now.relations.findIndex((each) => each.subject === subject && each.object === object && each.predicate === predicate); }

  draw() {
    this.relations.draw();
    this.proposals.draw();
    this.boxlist.draw();
    this.buttons();
    this.told();
  }

  buttons() {
    const off = !this.now;
    byId("undo").disabled = off || !this.past.length;
    byId("redo").disabled = off || !this.future.length;
    byId("done").disabled = off;
    byId("before").disabled = off || this.about.before === null;
    byId("after").disabled = off || this.about.after === null;
    byId("find-boxes").hidden = off || this.now.boxes.length > 0;
  }

  // A box with all its relations, or the two ends of one; the rest fades.
  light(box, other) {
    const { drawing, figure } = this.editor;
    if (!this.now) return;
    const joined = new Set(this.now.relations.flatMap(({ subject, object }, k) => ((other === undefined ? subject === box || object === box : subject === box && object === other) ? [k] : [])));
    const boxes = new Set([box, ...(other === undefined ? [] : [other]), ...[...joined].flatMap((k) => [this.now.relations[k].subject, this.now.relations[k].object])]);
    gallery.all("[data-box]", drawing).forEach((part) => part.classList.toggle("on", boxes.has(Number(part.dataset.box))));
    gallery.all("[data-link]", drawing).forEach((part) => part.classList.toggle("on", joined.has(Number(part.dataset.link))));
    figure.classList.add("lit");
  }

  rest() {
    const chosen = this.now?.relations[this.relations.choice];
    if (chosen) { this.light(chosen.subject, chosen.object); return; }
    gallery.all(".on", this.editor.drawing).forEach((part) => part.classList.remove("on"));
    this.editor.figure.classList.remove("lit");
  }

  // Two keys, or two boxes by pointer: by the likeliest predicate that they do not have yet; a quick typist waits for it.
  async relatePair(subject, object) {
    if (!this.now) return;
    const bare = [subject, object].find((k) => !this.now.boxes[k]?.label);
    if (bare !== undefined) { say("Name the box first."); this.editor.rename(bare); return; }
    const { boxes } = this.now;
    const ranked = await this.proposals.ranked(subject, object);
    if (boxes !== this.now?.boxes) return;
    const next = ranked.find(([predicate]) => this.has({ subject, object, predicate }) < 0);
    this.relate(subject, object, next?.[0] || this.predicates[0]);
  }

  relate(subject, object, predicate) {
    const there = this.has({ subject, object, predicate });
    if (there >= 0) { this.relations.pick(there); return; }
    const boxes = this.now.boxes.some(({ machine }, k) => machine && (k === subject || k === object))
      ? this.now.boxes.map((each, k) => (k === subject || k === object ? { ...each, machine: false } : each)) : this.now.boxes;
    const length = this.now.relations.length;
    this.proposals.same(this.now.boxes, boxes);
    this.change({ ...this.now, boxes, relations: [...this.now.relations, { subject, predicate, object }] });
    this.relations.pick(length);
  }

  setStatus(status) {
    const bare = this.unnamed();
    if (bare.length && status !== "begun" && status !== "rejected") { say("Name all boxes first."); this.editor.rename(bare[0]); this.review.draw(); return false; }
    const sureOf = status === "done" || status === "reviewed";
    const boxes = sureOf ? this.now.boxes.map((each) => ({ ...each, machine: false })) : this.now.boxes;
    this.proposals.same(this.now.boxes, boxes);
    this.change({ ...this.now, boxes, status });
    return true;
  }

  async finish() {
    if (!this.now || !this.setStatus("done")) return;
    const { image } = this;
    this.progress.mark(image, this.key, "done");
    try {
      const next = await this.next(image);
      if (next === null) say("All pictures are done."); else if (image === this.image) location.hash = `annotate/${next}`;
    } catch (problem) { say(problem.message); }
  }

  step(by) {
    const next = by > 0 ? this.about?.after : this.about?.before;
    if (typeof next === "number") location.hash = `annotate/${next}`;
  }

  exports() {
    gallery.all("#exports a").forEach((link) => { link.search = `?status=${byId("export-status").value}${byId("export-test").value > 0 ? `&test=${byId("export-test").value}` : ""}`; });
  }

  // A file of others: what it says of pictures that were not begun here, or how far it agrees with what is here.
  async exchange(input, what) {
    const [file] = input.files;
    input.value = "";
    if (!file) return;
    const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)}%`);
    byId("exchange").textContent = `Reading ${file.name}…`;
    try {
      const said = await askJson(`/api/${what}?name=${encodeURIComponent(file.name.slice(-200))}`, { method: "POST", raw: file });
      byId("exchange").textContent = what === "import"
        ? `${said.imported} pictures begun; ${said.kept} were begun here and stay; ${said.unknown} are not here.`
        : `Agreement on ${said.pictures} pictures: objects ${percent(said.objects)}, relations ${percent(said.relations)}; predicates of ${said.pairs} pairs that both relate ${percent(said.predicates)}${said.kappa === null ? "" : `, kappa ${said.kappa.toFixed(2)}`}.`;
      if (what !== "import") return;
      await this.progress.refresh();
      this.progress.page = -1;
      const { image } = this;
      if (image === undefined) return;
      if (!this.saver.of(this.key).length) { this.image = undefined; await this.load(image); }
    } catch (problem) { byId("exchange").textContent = problem.message; }
  }

  typed(letter) {
    this.letters = (this.letters || "") + letter;
    const k = boxOf(this.letters, this.now.boxes.length);
    if (k === null) return;
    this.letters = "";
    if (k < 0) return;
    const { subject } = this.editor;
    if (subject < 0) { this.editor.mark(k); this.light(k); return; }
    this.editor.mark(-1);
    if (subject !== k) this.relatePair(subject, k);
  }

  pressed(event) {
    if (!this.now || event.target.closest("input, select, textarea, summary")) return;
    const command = event.ctrlKey || event.metaKey;
    const key = event.key;
    if (command && key === "Enter") this.finish();
    else if (command && key.toLowerCase() === "z") { if (event.shiftKey) this.redo(); else this.undo(); }
    else if (command && key.toLowerCase() === "y") this.redo();
    else if (event.altKey && key === "ArrowRight" && !event.target.closest(".box")) this.step(1);
    else if (event.altKey && key === "ArrowLeft" && !event.target.closest(".box")) this.step(-1);
    else if (command || event.altKey) return;
    else if (key === "Escape") { this.letters = ""; this.editor.use("edit"); this.editor.choose(-1); this.relations.pick(-1); }
    else if ((key === "ArrowDown" || key === "ArrowUp") && !event.target.closest(".box, .thumb")) { if (!this.proposals.move(key === "ArrowDown" ? 1 : -1)) return; }
    else if (/^[1-9]$/.test(key)) this.relations.choose(Number(key) - 1);
    else if (key === "Insert") this.editor.use("draw");
    else if ((key === "Delete" || key === "Backspace") && !event.target.closest(".box")) this.relations.remove();
    else if (key.length === 1 && /[a-z]/i.test(key)) this.typed(key);
    else if (!this.editor.view.key(event)) return;
    event.preventDefault();
  }
}
