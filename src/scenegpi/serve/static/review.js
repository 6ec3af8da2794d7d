// Who says so, how far a picture is, remarks on it, and its history; and questions that need an answer.
import { askJson, byId, el, say } from "./page.js";

const STATUSES = ["begun", "done", "reviewed", "rejected"];
const NAME = "scenegpi-person";

export class Review {
  constructor(work) {
    this.work = work;
    this.person = el("input", { type: "text", maxlength: 100, placeholder: "your name", "aria-label": "Your name, kept with each change", autocomplete: "name" });
    try { this.person.value = localStorage.getItem(NAME) || ""; } catch { /* it is asked again */ }
    this.person.addEventListener("change", () => { try { localStorage.setItem(NAME, this.by); } catch { /* for this window only */ } });
    this.comment = el("textarea", { rows: 2, maxlength: 2000, placeholder: "remarks on this picture", "aria-label": "Remarks on this picture" });
    this.comment.addEventListener("change", () => { if (work.now && this.comment.value.trim() !== work.now.comment) work.change({ ...work.now, comment: this.comment.value.trim() }); });
    this.status = el("select", { "aria-label": "State of this picture" }, ...STATUSES.map((name) => el("option", { value: name }, name)));
    this.status.addEventListener("change", () => { if (work.now) work.setStatus(this.status.value); });
    this.history = el("ol", { class: "list" });
    this.past = el("details", { class: "past" }, el("summary", {}, "History"), this.history);
    this.past.addEventListener("toggle", () => { if (this.past.open) this.show(); });
    this.element = el("section", { class: "panel review" }, el("h2", {}, "Review"), el("div", { class: "fields" }, this.status, this.person), this.comment, this.past);
    [this.person, this.comment].forEach((field) => field.addEventListener("keydown", (event) => event.stopPropagation()));
  }

  get by() { return this.person.value.trim(); }

  clear() { this.past.open = false; this.history.replaceChildren(); this.comment.value = ""; byId("new-name").replaceChildren(); this.answer?.(false); }

  load() { this.past.open = false; this.draw(); }

  draw() {
    const { now } = this.work;
    if (!now) return;
    this.status.value = now.status || "begun";
    this.comment.value = now.comment || "";
  }

  // The states that the server has, each of which can be taken up again, in any session.
  async show() {
    const { work } = this;
    const { image } = work;
    try {
      const { versions } = await askJson(`/api/annotations/${image}/history`);
      if (image !== work.image) return;
      this.history.replaceChildren(...versions.map((each, k) => {
        const { graph, revision, status, by, at, comment, machine } = each;
        const words = `${revision}: ${status}, ${graph.objects.length} boxes, ${graph.relations.length} relations${by ? `, ${by}` : ""}${at ? `, ${at.slice(0, 16).replace("T", " ")}` : ""}${comment ? `, “${comment}”` : ""}`;
        const back = el("button", { type: "button", class: "toggle", "aria-label": `Go back to state ${revision}` }, "go back");
        back.addEventListener("click", () => this.restore({ graph, status, comment, machine }));
        return el("li", { class: "row" }, el("span", { class: "words" }, words), k ? back : null);
      }));
      if (!versions.length) this.history.append(el("li", { class: "none" }, "Nothing is saved for this picture yet."));
    } catch (problem) { say(problem.message); }
  }

  restore({ graph, status, comment, machine }) {
    const { work } = this;
    if (!work.now) return;
    const before = work.now;
    work.start({ graph, machine, status, comment });
    const { now } = work;
    work.now = before;
    work.change(now);
    this.draw();
    this.show();
  }

  // Whether a new name may be added; asked on the page, until it is answered.
  askName(kind, name) {
    this.answer?.(false);
    return new Promise((resolve) => {
      const place = byId("new-name");
      const back = document.activeElement;
      const end = (yes) => { place.replaceChildren(); this.answer = null; resolve(yes); if (back?.isConnected) back.focus(); };
      this.answer = end;
      const yes = el("button", { type: "button", class: "button strong" }, "Add it");
      const no = el("button", { type: "button", class: "button" }, "Cancel");
      yes.addEventListener("click", () => end(true));
      no.addEventListener("click", () => end(false));
      place.replaceChildren(el("div", { class: "question", role: "alertdialog", "aria-label": "A new name" },
        el("p", {}, `“${name}” is not among the ${kind === "objects" ? "labels" : "predicates"} of this data set yet.`), yes, no));
      place.firstChild.addEventListener("keydown", (event) => { if (event.key === "Escape") end(false); event.stopPropagation(); });
      setTimeout(() => yes.focus());  // once the field has lost it
    });
  }
}
