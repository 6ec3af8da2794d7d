// Browse: pictures by what is in them, by state, tag and score; what is shown is in the address.
import { useByApi } from "./apiuse.js";
import { Facets } from "./facets.js";
import { askJson, byId, decoded, el, say, svg } from "./page.js";
import { Run } from "./run.js";
import { Viewer } from "./viewer.js";

const PAGE = 60;
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"];
const PLAIN = { query: "", least: 0, status: "any", tag: "", order: "added", like: "", picture: "" };

export class Browse {
  constructor(library) {
    this.library = library;
    this.state = { ...PLAIN };
    this.items = [];
    this.total = 0;
    this.facets = new Facets(this);
    this.viewer = new Viewer(this);
    this.run = new Run(library, () => this.again());
    byId("search").addEventListener("submit", (event) => { event.preventDefault(); this.search(byId("query").value); });
    byId("query").addEventListener("input", () => this.suggest());
    byId("more").addEventListener("click", () => { this.stuck = false; this.load(); });
    byId("browse-api").addEventListener("click", () => useByApi({ path: this.request(0) }));
    this.end = new IntersectionObserver((seen) => { if (seen.at(-1).isIntersecting && !byId("more").hidden && !this.stuck) this.load(); }, { rootMargin: "800px" });
    this.look();
    this.title();
  }

  title() {
    const { library } = this;
    const what = { store: "store", data: "data set", photos: "folder" }[library.kind];
    const number = library.total.toLocaleString("en");
    byId("browse-lead").textContent = library.total ? `${number} ${library.total === 1 ? "picture" : "pictures"}${what ? ` of the ${what} ${library.name}` : ""}` : "No pictures yet.";
    byId("search").hidden = !library.search;
  }

  // What the address says: #browse/a query?least=0.3&status=done&tag=night&order=uncertain&like=7&picture=12
  open(address) {
    const [path, search = ""] = address.split("?");
    const given = Object.fromEntries(new URLSearchParams(search));
    const next = { ...PLAIN, ...Object.fromEntries(Object.keys(PLAIN).filter((key) => given[key] !== undefined).map((key) => [key, given[key]])), query: decoded(path) };
    next.least = Math.max(0, Math.min(1, Number(next.least) || 0));
    const listed = (state) => JSON.stringify({ ...state, picture: "", least: state.query ? state.least : 0 });
    const same = this.opened && listed(next) === listed(this.state);
    this.state = next;
    byId("query").value = next.query;
    this.facets.show();
    if (!same) this.restart();
    this.opened = true;
    if (next.picture === "") this.viewer.close(); else this.viewer.open(Number(next.picture));
  }

  address(changes) {
    const { query, ...rest } = { ...this.state, ...changes };
    const params = new URLSearchParams(Object.entries(rest).filter(([key, value]) => String(value) !== String(PLAIN[key])));
    return `browse/${encodeURIComponent(query)}${params.size ? `?${params}` : ""}`;
  }

  go(changes) { location.hash = this.address(changes); }
  search(text) { this.go({ query: text.trim(), like: "", picture: "" }); }

  restart() {
    this.turn = (this.turn || 0) + 1;
    this.items = [];
    this.loading = null;
    this.stuck = false;
    byId("grid").replaceChildren();
    byId("notes").replaceChildren();
    byId("more").hidden = true;
    this.load();
  }

  // Pictures were added, or have become searchable.
  async again() {
    Object.assign(this.library, await askJson("/api/library"));
    this.title();
    this.facets.fill();
    if (!byId("browse").hidden) this.restart();
  }

  suggest() {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      const last = byId("query").value.split(/\band\b/);
      try {
        const { suggestions } = await askJson(`/api/suggest?q=${encodeURIComponent(last.at(-1).trim().slice(0, 200))}`);
        const before = last.slice(0, -1).map((part) => part.trim()).join(" and ");
        byId("suggestions").replaceChildren(...suggestions.map((text) => el("option", { value: before ? `${before} and ${text}` : text })));
      } catch { /* none are offered */ }
    }, 150);
  }

  request(offset) {
    const { query, least, status, tag, order, like } = this.state;
    const params = new URLSearchParams({ limit: PAGE, offset });
    if (like !== "") return `/api/images/${encodeURIComponent(like)}/similar?limit=${PAGE}`;
    if (status !== "any") params.set("status", status);
    if (tag) params.set("tag", tag);
    if (query && least) params.set("least", least);
    if (query) return `/api/search?q=${encodeURIComponent(query)}&${params}`;
    if (order !== "added") params.set("order", order);
    return `/api/images?${params}`;
  }

  load() { return (this.loading ??= this.fetch().finally(() => { this.loading = null; this.look(); })); }

  // Is the end near? An observer tells changes only, and who scrolls on while pictures come may see none.
  look() {
    this.end.unobserve(byId("more"));
    this.end.observe(byId("more"));
  }

  async fetch() {
    const { turn } = this;
    const { query, like } = this.state;
    say("");
    try {
      const found = await askJson(this.request(this.items.length));
      if (turn !== this.turn) return;
      const some = found.hits || found.images;
      this.items.push(...some);
      this.total = found.total ?? some.length;
      byId("notes").replaceChildren(...(found.notes || []).map((note) => el("p", {}, note)));
      const number = `${this.total.toLocaleString("en")} ${this.total === 1 ? "picture" : "pictures"}`;
      byId("count").textContent = like !== "" ? `Similar to picture ${Number(like) + 1}: ${number}` : query ? `${found.query}: ${number}` : number;
      byId("grid").append(...some.map((each) => el("li", {}, this.card(each))));
      byId("more").hidden = !some.length || this.items.length >= this.total;
      byId("more").textContent = "More";
      this.viewer.steps();
    } catch (problem) {
      if (turn !== this.turn) return;
      if (!this.items.length) byId("count").textContent = "";
      this.stuck = problem.status === 0 || problem.status >= 429;  // it may go better the next time
      byId("more").hidden = !this.stuck;
      byId("more").textContent = "Try again";
      say(problem.message);
    }
  }

  card(each) {
    const wide = each.width || 4;
    const tall = each.height || 3;
    const picture = svg("svg", { viewBox: `0 0 ${wide} ${tall}`, preserveAspectRatio: "xMidYMid meet", "aria-hidden": "true" });
    if (each.photo) picture.append(svg("image", { href: `/api/images/${each.image}/photo?size=thumb`, width: wide, height: tall, preserveAspectRatio: each.width ? "none" : "xMidYMid slice" }));
    const best = each.matches?.[0];
    (best?.boxes || []).forEach((box, k) => {
      if (!box) return;
      const [x, y, x2, y2] = box;
      ["halo", "frame"].forEach((kind) => picture.append(svg("rect", { class: kind, x, y, width: x2 - x, height: y2 - y, stroke: kind === "frame" ? COLOURS[k % COLOURS.length] : null })));
    });
    const card = el("button", { type: "button", class: "hit", "data-image": each.image }, picture,
      el("p", {}, el("span", { class: "name" }, each.file || each.key), each.score === undefined ? null : el("span", { class: "number" }, each.score.toFixed(2))),
      best ? el("span", { class: "unseen" }, best.labels.filter(Boolean).join(", ")) : null,
      each.changed ? el("p", {}, "Changed since it was indexed.") : null);
    card.addEventListener("click", () => this.go({ picture: each.image }));
    return card;
  }
}
