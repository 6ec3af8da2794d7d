// A folder, or photos that were dropped here, predicted and indexed, with how far it is.
import { ask, askJson, byId, el, say } from "./page.js";

const PAUSE = 700;
const MOST_FILES = 5000;
const PHOTO = /\.(jpe?g|png|webp|bmp|avif|heic|heif)$/i;

export class Run {
  // `finished()` is called when pictures were added or have become searchable.
  constructor(library, finished) {
    Object.assign(this, { library, finished });
    if (!library.predict) return;
    this.folder = el("select", { "aria-label": "Photos to predict" });
    this.start = this.button("Find scene graphs", () => this.begin(), "strong");
    this.end = this.button("Stop", () => askJson("/api/runs", { method: "DELETE" }).catch((problem) => say(problem.message)));
    this.input = el("input", { type: "file", multiple: true, accept: "image/*" });
    this.input.addEventListener("change", () => this.take([...this.input.files]));
    this.bar = el("progress", { max: 1, value: 0, "aria-label": "Photos predicted" });
    this.said = el("p", { class: "run-said", role: "status" });
    byId("run").replaceChildren(el("div", { class: "run" }, this.folder, this.start, el("label", { class: "file" }, "Add photos", this.input), this.end, this.bar, this.said));
    const page = byId("browse");
    page.addEventListener("dragover", (event) => { event.preventDefault(); page.classList.add("over"); });
    page.addEventListener("dragleave", () => page.classList.remove("over"));
    page.addEventListener("drop", async (event) => {
      event.preventDefault();
      page.classList.remove("over");
      this.take(await droppedFiles(event.dataTransfer));
    });
    this.fill().then(() => this.watch()).catch((problem) => say(problem.message));
  }

  button(text, act, kind = "") {
    const button = el("button", { type: "button", class: `button ${kind}` }, text);
    button.addEventListener("click", act);
    return button;
  }

  async fill() {
    const { folders, total } = await askJson("/api/folders");
    const option = (value, text, count) => el("option", { value }, `${text} (${count.toLocaleString("en")})`);
    this.folder.replaceChildren(option("", "all photos", total), ...Object.entries(folders).map(([name, count]) => option(name, name, count)));
    this.folder.hidden = this.start.hidden = !total;
  }

  async begin() {
    say("");
    try {
      await askJson("/api/runs", { method: "POST", body: { folder: this.folder.value } });
      await this.watch();
    } catch (problem) { say(problem.message); }
  }

  async watch() {
    for (let first = true; ; first = false) {
      const run = await askJson("/api/runs").catch(() => null);
      const on = run?.state === "running" || run?.state === "indexing";
      if (run) this.show(run, on);
      if (run && !on) { if (!first) await this.finished(); return; }
      await new Promise((done) => { setTimeout(done, PAUSE); });
    }
  }

  show({ state, done, total, skipped, problem }, on) {
    const number = (value) => value.toLocaleString("en");
    const left = skipped ? `; ${number(skipped)} cannot be read` : "";
    this.bar.hidden = this.end.hidden = !on;
    this.start.disabled = on;
    this.start.classList.toggle("strong", !this.library.search);
    Object.assign(this.bar, { max: total || 1, value: done });
    this.said.textContent = {
      none: this.library.search ? "" : "These photos have no scene graphs yet. Find them, and the photos can be searched.",
      running: `${number(done)} of ${number(total)} photos`,
      indexing: "Indexing…",
      done: `${number(total)} ${total === 1 ? "photo" : "photos"} predicted and indexed${left}.`,
      stopped: `Stopped after ${number(done)} of ${number(total)} photos; the next run continues from there.`,
      failed: `Not finished: ${problem}`,
    }[state];
  }

  // Files are sent one by one, and then predicted.
  async take(files) {
    const photos = files.filter(({ name }) => PHOTO.test(name)).slice(0, MOST_FILES);
    if (!photos.length) { say("None of these files is a photo."); return; }
    const failed = [];
    this.bar.hidden = false;
    for (const [k, file] of photos.entries()) {
      Object.assign(this.bar, { max: photos.length, value: k });
      this.said.textContent = `Adding ${k + 1} of ${photos.length} photos`;
      try {
        await ask(`/api/dropped?name=${encodeURIComponent(file.name.slice(-200))}`, { method: "POST", raw: file });
      } catch (problem) { failed.push(problem.message); }
    }
    if (failed.length) say(`${failed.length} not added: ${failed[0]}`);
    await this.finished();
    await this.fill();
    if (failed.length < photos.length) {
      this.folder.value = [...this.folder.options].some(({ value }) => value === "dropped") ? "dropped" : "";
      await this.begin();
      this.folder.value = "";
    } else this.bar.hidden = true;
  }
}

// The files of a drop, and those of folders in it.
export const droppedFiles = async (transfer) => {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files];
  const found = [];
  const visit = async (entry) => {
    if (found.length >= MOST_FILES) return;
    if (entry.isFile) { found.push(await new Promise((done, fail) => { entry.file(done, fail); })); return; }
    const reader = entry.createReader();
    for (let some = [null]; some.length;) {
      some = await new Promise((done, fail) => { reader.readEntries(done, fail); });
      for (const each of some) await visit(each);
    }
  };
  for (const entry of entries) await visit(entry);
  return found;
};
