// The pictures to annotate, as a strip of thumbnails, a page at a time, and how far they are.
import { askJson, byId, el, say, thumbnail } from "./page.js";

const PAGE = 60;
const SAID = { begun: "begun", done: "done", reviewed: "reviewed", rejected: "rejected" };
const SIGNS = { begun: "…", done: "✓", reviewed: "✓✓", rejected: "✗" };

export class Progress {
  constructor(total) {
    this.total = total;
    this.page = -1;
    this.thumbs = new Map();
    byId("strip-before").addEventListener("click", () => this.turn(this.page - 1).catch((problem) => say(problem.message)));
    byId("strip-after").addEventListener("click", () => this.turn(this.page + 1).catch((problem) => say(problem.message)));
    byId("go-to").max = total;
    byId("go-to").addEventListener("change", async (event) => {
      const number = Math.round(Number(event.target.value));
      if (!(number >= 1 && number <= total)) return;
      try {
        const { images } = await askJson(`/api/images?limit=1&offset=${number - 1}`);
        location.hash = `annotate/${images[0].image}`;
      } catch (problem) { say(problem.message); }
    });
  }

  async refresh() {
    const progress = await askJson("/api/annotations");
    this.statuses = new Map(Object.entries(progress.statuses));
    this.meter(progress);
  }

  async turn(page) {
    if (page < 0 || page * PAGE >= this.total) return;
    const { images } = await askJson(`/api/images?limit=${PAGE}&offset=${page * PAGE}`);
    this.page = page;
    this.thumbs = new Map(images.map((each) => {
      const thumb = el("button", { type: "button", class: "thumb" }, thumbnail(each));
      thumb.addEventListener("click", () => { location.hash = `annotate/${each.image}`; });
      return [each.image, { each, thumb }];
    }));
    this.thumbs.forEach(({ each }) => this.draw(each.image));
    const items = [...this.thumbs.values()].map(({ thumb }) => thumb);
    byId("annotate-strip").replaceChildren(...items);
    gallery.roving(items);
    byId("strip-before").disabled = page === 0;
    byId("strip-after").disabled = (page + 1) * PAGE >= this.total;
    this.current(this.image);
  }

  mark(image, key, status) {
    this.statuses.set(key, status);
    this.draw(image);
  }

  draw(image) {
    if (!this.thumbs.has(image)) return;
    const { each, thumb } = this.thumbs.get(image);
    const status = this.statuses.get(each.key);
    thumb.classList.toggle("done", status === "done" || status === "reviewed");
    thumb.querySelector(".state")?.remove();
    if (status) thumb.append(el("span", { class: "state", "aria-hidden": "true" }, SIGNS[status]));
    thumb.setAttribute("aria-label", `${each.file || each.key}, ${SAID[status] || "not begun"}`);
  }

  async show(image, place) {
    this.image = image;
    byId("go-to").value = place + 1;
    if (Math.floor(place / PAGE) !== this.page) await this.turn(Math.floor(place / PAGE)); else this.current(image);
  }

  current(image) {
    this.thumbs.forEach(({ thumb }, number) => thumb.setAttribute("aria-current", String(number === image)));
    const thumb = this.thumbs.get(image)?.thumb;  // the page itself stays where it is
    if (thumb) byId("annotate-strip").scrollTo({ left: thumb.offsetLeft - byId("annotate-strip").offsetLeft - (byId("annotate-strip").clientWidth - thumb.clientWidth) / 2 });
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
