// Autosave: the newest state of a picture is sent until the server says that it is on its disk.
// Until then it is also kept in the browser, so that neither a closed tab nor a stopped server loses it.
import { askJson } from "./page.js";

const AGAIN = 1500;
const slot = (image) => `scenegpi-pending-${location.port}-${image}`;
const store = (image, value) => {
  try {
    if (value === null) localStorage.removeItem(slot(image)); else localStorage.setItem(slot(image), JSON.stringify(value));
  } catch { /* a browser that keeps nothing: the server still does */ }
};

export class Autosave {
  constructor(tell) {
    this.tell = tell;
    this.revisions = new Map();
    this.waiting = new Map();
    this.sending = false;
    addEventListener("beforeunload", (event) => { if (this.waiting.size) event.preventDefault(); });
  }

  // What the server has of a picture; gives back what it has not got yet, if the browser kept it.
  begin(image, { revision, key }) {
    let pending = null;
    try { pending = JSON.parse(localStorage.getItem(slot(image))); } catch { /* nothing that can be read */ }
    if (pending?.key !== key || pending.revision <= revision) pending = null;
    store(image, pending);
    this.revisions.set(image, pending?.revision || revision);
    this.key = key;
    if (pending) this.send(image, pending);
    this.tell({ kind: "quiet", text: revision ? "Saved" : "" });
    return pending;
  }

  save(image, state) {
    const revision = (this.revisions.get(image) || 0) + 1;
    this.revisions.set(image, revision);
    const whole = { ...state, revision, key: this.key };
    store(image, whole);
    this.send(image, whole);
  }

  send(image, state) {
    this.waiting.set(image, state);
    this.tell({ kind: "busy", text: "Saving…" });
    this.run();
  }

  async run() {
    if (this.sending) return;
    this.sending = true;
    while (this.waiting.size) {
      const [image, { graph, done, revision }] = this.waiting.entries().next().value;
      try {
        const answer = await askJson(`/api/annotations/${image}`, { method: "PUT", body: { graph, done, revision } });
        if (answer.revision > revision) {
          this.waiting.delete(image);
          store(image, null);
          this.tell({ kind: "waiting", text: "This picture was changed in another window: reload to see it." });
          continue;
        }
        if (this.waiting.get(image)?.revision === revision) { this.waiting.delete(image); store(image, null); }
        if (!this.waiting.size) this.tell({ kind: "quiet", text: "Saved", answer });
      } catch (problem) {
        if (problem.status === 422 || problem.status === 404) {
          this.waiting.delete(image);
          this.tell({ kind: "waiting", text: `Not saved: ${problem.message}` });
          continue;
        }
        this.tell({ kind: "waiting", text: `Not saved yet: ${problem.message}. Trying again.` });
        await new Promise((done_) => { setTimeout(done_, AGAIN); });
      }
    }
    this.sending = false;
  }
}
