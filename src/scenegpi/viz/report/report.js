"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const { all, roving, theme, wire } = gallery;
  root.classList.add("js");
  theme(document.getElementById("theme"));

  // A group of buttons of which one is pressed.
  const choice = (group, pick) => all("button", group).forEach((one) => one.addEventListener("click", () => {
    all("button", group).forEach((other) => other.setAttribute("aria-pressed", String(other === one)));
    pick(one);
  }));
  all(".choices").forEach((group) => choice(group, (one) => {
    if (one.dataset.plot) all(".plot").forEach((plot) => { plot.hidden = plot.dataset.plot !== one.dataset.plot; });
    if (one.dataset.why) {
      thumbs.forEach((thumb) => { thumb.hidden = one.dataset.why !== "all" && thumb.dataset.why !== one.dataset.why; });
      const shown = thumbs.filter((thumb) => !thumb.hidden);
      if (!shown.some((thumb) => thumb.getAttribute("aria-selected") === "true")) open(shown[0]);
    }
  }));

  // Curves: the pointer or the arrow keys read values off them.
  Object.entries(data.charts).forEach(([id, chart]) => {
    const box = document.getElementById(id);
    const svg = box.querySelector("svg");
    const cross = box.querySelector(".cross");
    const readout = box.querySelector(".readout");
    let at = chart.x.length - 1;
    const read = (k) => {
      at = Math.max(0, Math.min(chart.x.length - 1, k));
      cross.setAttribute("visibility", "visible");
      cross.setAttribute("x1", chart.x[at]);
      cross.setAttribute("x2", chart.x[at]);
      const values = chart.series.filter(([, v]) => v[at] !== null).map(([name, v]) => `${name} ${+v[at].toFixed(2)}`);
      readout.textContent = `Epoch ${chart.at[at]}: ${values.join(", ")}`;
    };
    svg.addEventListener("pointermove", (event) => {
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const gaps = chart.x.map((x) => Math.abs(x - place.x));
      read(gaps.indexOf(Math.min(...gaps)));
    });
    box.addEventListener("focus", () => read(at));
    box.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) { event.preventDefault(); read(at + step); }
    });
  });

  // A table that its headings sort.
  all("table.bars").forEach((table) => all("button[data-sort]", table).forEach((head) => head.addEventListener("click", () => {
    const cell = head.parentElement;
    const name = head.dataset.sort === "name";
    const now = cell.getAttribute("aria-sort");
    const down = now === "none" ? !name : now === "ascending";
    all("th[aria-sort]", table).forEach((other) => other.setAttribute("aria-sort", "none"));
    cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const value = (row) => (name ? row.dataset.name : Number(row.dataset[head.dataset.sort]));
    const rows = [...body.rows].sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0));
    body.append(...(down ? rows.reverse() : rows));
  })));

  all(".more").forEach((more) => more.addEventListener("click", () => {
    all("table.bars").forEach((table) => table.classList.remove("short"));
    more.remove();
  }));

  // The gallery: a strip of pictures, of which one is open.
  const thumbs = all(".thumb");
  const open = (thumb) => {
    if (!thumb) return;
    thumbs.forEach((other) => {
      const chosen = other === thumb;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
    });
    all(".scene").forEach((scene) => scene.classList.toggle("current", scene.dataset.scene === thumb.dataset.scene));
  };
  thumbs.forEach((thumb) => {
    thumb.addEventListener("click", () => open(thumb));
    const photo = document.querySelector(`#scene-${thumb.dataset.scene} image`);
    if (photo) {  // the picture is in the page once; the strip borrows it
      const copy = photo.cloneNode();
      const frame = thumb.querySelector("svg");
      copy.setAttribute("width", "120");
      copy.setAttribute("height", frame.viewBox.baseVal.height);
      frame.prepend(copy);
    }
  });
  roving(thumbs, open);
  open(thumbs[0]);
  all(".scene").forEach((scene) => wire(scene, data.scenes[Number(scene.dataset.scene)]));

  // An address can name an image, and an object in it: report.html#scene-3-box-0
  const follow = () => {
    const found = /^#scene-(\d+)(?:-box-(\d+))?$/.exec(location.hash);
    const thumb = found && thumbs.find((one) => one.dataset.scene === found[1]);
    if (!thumb) return;
    open(thumb);
    const scene = document.getElementById(`scene-${found[1]}`);
    if (found[2]) scene.querySelector(`.box[data-box="${found[2]}"]:not(.pinned)`)?.dispatchEvent(new MouseEvent("click"));
    scene.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();
})();
