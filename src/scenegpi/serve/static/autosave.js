// Autosave: the newest state of a picture is sent until the server says that it is on its disk.
// Until then it is kept in the browser, too, so that neither a closed tab nor a stopped server loses it; what cannot be
// saved as it is (a conflict, an unknown name) stays in the list of unsaved pictures until the person has solved it.
import { askJson, Problem } from "./page.js";

const AGAIN = 1500;
const FINAL = new Set([400, 403, 404, 413, 422]);  // the same request would fail again

const random = () => Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join("");

const shelf = {
  keys: () => { try { return Object.keys(localStorage); } catch { return []; } },
  get: (slot) => { try { return JSON.parse(localStorage.getItem(slot)); } catch { return null; } },
  put: (slot, value) => { try { localStorage.setItem(slot, JSON.stringify(value)); } catch { /* full, or none: the server still keeps it */ } },
  drop: (slot) => { try { localStorage.removeItem(slot); } catch { /* none */ } },
};

const ownWindow = () => {
  try { return (sessionStorage.scenegpiWindow ||= random()); } catch { return random(); }
};

export class Autosave {
  // `tell()` is called whenever something has changed: saved, waiting, in conflict.
  constructor(library, tell) {
    this.tell = tell;
    this.prefix = `scenegpi-unsaved:${library}:`;
    this.window = ownWindow();
    this.entries = new Map();  // slot -> { image, key, based_on, state, conflict, problem, loose }
    this.revisions = new Map();
    this.sending = false;
    this.answer = null;
    shelf.keys().filter((slot) => slot.startsWith(this.prefix)).forEach((slot) => {
      const entry = shelf.get(slot);
      if (entry?.state) this.entries.set(slot, { ...entry, loose: true }); else shelf.drop(slot);
    });
    addEventListener("beforeunload", (event) => { if (this.unsaved().length) event.preventDefault(); });
  }

  slot(key) { return `${this.prefix}${this.window}:${key}`; }
  unsaved() { return [...this.entries.values()]; }
  of(key) { return this.unsaved().filter((entry) => entry.key === key); }

  // What the server has of a picture; gives back what it has not got yet, if this browser kept it.
  begin(image, kept) {
    this.revisions.set(kept.key, kept.revision);
    let own = null;
    this.entries.forEach((entry, slot) => {
      if (entry.key !== kept.key) return;
      if (entry.state.change === kept.change) { this.forget(slot); return; }  // it got there, only the answer did not
      if (own) return;
      const conflict = entry.based_on !== kept.revision;
      own = { ...entry, image, conflict, problem: null, loose: false };
      this.forget(slot);
      this.keep(own);
    });
    if (own && !own.conflict) this.run();
    this.tell();
    return own;
  }

  save(image, key, state) {
    const before = this.entries.get(this.slot(key));
    const based_on = before ? before.based_on : this.revisions.get(key) ?? 0;
    this.keep({ image, key, based_on, state: { ...state, change: random() }, conflict: before?.conflict || false, problem: null });
    this.tell();
    this.run();
  }

  // The person's choice between two states: theirs is there already, mine is sent as a change to it.
  keepMine(key, revision) {
    const entry = this.entries.get(this.slot(key));
    if (entry) { this.keep({ ...entry, based_on: revision, conflict: false, problem: null }); this.tell(); this.run(); }
  }

  keepTheirs(key) { this.forget(this.slot(key)); this.tell(); }

  keep(entry) { this.entries.set(this.slot(entry.key), entry); shelf.put(this.slot(entry.key), entry); }
  forget(slot) { this.entries.delete(slot); shelf.drop(slot); }

  next() { return [...this.entries].find(([, entry]) => !entry.conflict && !entry.problem && !entry.loose); }

  async run() {
    if (this.sending) return;
    this.sending = true;
    for (let found = this.next(); found; found = this.next()) await this.send(...found);
    this.sending = false;
    this.tell();
  }

  async send(slot, entry) {
    const { image, key, based_on, state } = entry;
    const now = () => this.entries.get(slot);
    try {
      const answer = await askJson(`/api/annotations/${image}`, { method: "PUT", body: { ...state, based_on } });
      this.answer = answer;
      this.waiting = "";
      this.revisions.set(key, answer.revision);
      if (now()?.state.change === state.change) this.forget(slot);
      else if (now()) this.keep({ ...now(), based_on: answer.revision });
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (!now()) return;
      if (problem.status === 409) this.keep({ ...now(), conflict: true });
      else if (FINAL.has(problem.status)) { if (now().state.change === state.change) this.keep({ ...now(), problem: problem.message }); }
      else {
        this.waiting = problem.message;
        this.tell();
        await new Promise((done) => { setTimeout(done, AGAIN); });
      }
    }
    this.tell();
  }
}
