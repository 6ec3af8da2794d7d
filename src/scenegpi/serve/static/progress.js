// The pictures to annotate, as a strip of thumbnails, and how far they are.
import { askJson, byId, el } from "./page.js";

const MOST = 2000;
const PAGE = 200;

export class Progress {
  constructor(total) { this.total = total; }

  async list() {
    this.images = [];
    for (let offset = 0; offset < Math.min(this.total, MOST); offset += PAGE) {
      const { images } = await askJson(`/api/images?limit=${PAGE}&offset=${offset}`);
      this.images.push(...images);
    }
    const progress = await askJson("/api/annotations");
    this.thumbs = new Map(this.images.map((each) => {
      const inner = each.photo ? el("img", { src: `/api/images/${each.image}/photo?size=thumb`, alt: "", loading: "lazy" }) : el("span", { class: "blank-name" }, each.key);
      const thumb = el("button", { type: "button", class: "thumb" }, inner);
      thumb.addEventListener("click", () => { location.hash = `annotate/${each.image}`; });
      return [each.image, thumb];
    }));
    this.images.forEach(({ image, key }) => this.mark(image, progress.keys[key]));
    byId("annotate-strip").replaceChildren(...this.thumbs.values());
    gallery.roving([...this.thumbs.values()]);
    this.meter(progress);
  }

  // `done` is undefined where nothing was saved yet.
  mark(image, done) {
    const each = this.images.find((other) => other.image === image);
    if (!each) return;
    each.done = done;
    const thumb = this.thumbs.get(image);
    thumb.classList.toggle("done", done === true);
    thumb.querySelector(".state")?.remove();
    if (done !== undefined) thumb.append(el("span", { class: "state", "aria-hidden": "true" }, done ? "✓" : "…"));
    thumb.setAttribute("aria-label", `${each.file || each.key}, ${done === undefined ? "not begun" : done ? "done" : "begun"}`);
  }

  current(image) {
    this.thumbs.forEach((thumb, number) => thumb.setAttribute("aria-current", String(number === image)));
    this.thumbs.get(image)?.scrollIntoView({ block: "nearest", inline: "center" });
  }

  // The first picture after this one that is not done, from the start again after the last.
  next(image) {
    const at = this.images.findIndex((each) => each.image === image);
    return [...this.images.slice(at + 1), ...this.images.slice(0, Math.max(at, 0))].find(({ done }) => done !== true)?.image;
  }

  meter({ images, done, relations }) {
    const number = (value) => value.toLocaleString("en");
    byId("meter").querySelector(".begun").setAttribute("width", 100 * images / this.total);
    byId("meter").querySelector(".done").setAttribute("width", 100 * done / this.total);
    byId("meter").setAttribute("aria-valuenow", done);
    byId("meter").setAttribute("aria-valuemax", this.total);
    byId("progress").textContent = `${number(done)} of ${number(this.total)} done, ${number(images - done)} begun, ${number(relations)} ${relations === 1 ? "relation" : "relations"}`;
  }
}
