"use strict";
// What the report and the studio share: the theme, one stop for the Tab key, and a picture whose parts answer each other.
const gallery = (() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const SVG = "http://www.w3.org/2000/svg";

  // The theme: the reader's choice if there is one, else the system's.
  const theme = (button) => {
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)");
    const kept = () => { try { return localStorage.getItem("scenegpi-theme"); } catch { return null; } };
    const show = (name) => {
      root.dataset.theme = name;
      button.setAttribute("aria-pressed", String(name === "dark"));
    };
    show(kept() || (system.matches ? "dark" : "light"));
    system.addEventListener("change", () => { if (!kept()) show(system.matches ? "dark" : "light"); });
    button.addEventListener("click", () => {
      const name = root.dataset.theme === "dark" ? "light" : "dark";
      try { localStorage.setItem("scenegpi-theme", name); } catch { /* a page from disk may not keep things */ }
      show(name);
    });
  };

  // One stop for the Tab key; arrows go on within.
  const roving = (items, chosen = () => {}) => {
    if (!items.length) return;
    const first = items.find((item) => item.getAttribute("aria-selected") === "true") || items[0];
    items.forEach((item) => { item.tabIndex = item === first ? 0 : -1; });
    items.forEach((item) => {
      item.addEventListener("focus", () => items.forEach((other) => { other.tabIndex = other === item ? 0 : -1; }));
      item.addEventListener("keydown", (event) => {
        const able = items.filter((other) => !other.hidden);
        const at = able.indexOf(item);
        const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
        let next = null;
        if (event.key in steps) next = able[(at + steps[event.key] + able.length) % able.length];
        if (event.key === "Home") next = able[0];
        if (event.key === "End") next = able[able.length - 1];
        if (!next) return;
        event.preventDefault();
        next.focus();
        chosen(next);
      });
    });
  };

  // Boxes, nodes, pills and triplets of one picture light each other up; a click shows attention. `signal` ends it.
  const wire = (scene, facts, signal) => {
    let pinned = null;
    const boxes = new Map(all(".box", scene).map((box) => [Number(box.dataset.box), box]));
    const links = (element) => element.dataset.link.split(" ").map(Number);

    const light = (lit, joined) => {
      scene.classList.toggle("lit", lit.size > 0);
      all("[data-box]", scene).forEach((e) => e.classList.toggle("on", lit.has(Number(e.dataset.box))));
      all("[data-link]", scene).forEach((e) => e.classList.toggle("on", links(e).some((k) => joined.has(k))));
    };
    const dark = () => light(new Set(), new Set());
    const lightBox = (box) => {
      const joined = new Set(facts.links.flatMap(([s, o], k) => (s === box || o === box ? [k] : [])));
      light(new Set([box, ...[...joined].flatMap((k) => facts.links[k])]), joined);
    };
    const lightLinks = (some) => light(new Set(some.flatMap((k) => facts.links[k])), new Set(some));
    const lightOf = (element) => (element.dataset.link === undefined
      ? lightBox(Number(element.dataset.box)) : lightLinks(links(element)));
    const rest = () => {
      if (pinned && pinned.dataset) lightOf(pinned); else dark();
    };

    // Attention of one box, or (null) of the whole picture, as fills, lines, shares and a list.
    const heat = (box) => {
      const rays = scene.querySelector(".rays");
      rays.replaceChildren();
      scene.classList.toggle("heated", box !== undefined);
      const list = scene.querySelector(".weights");
      if (!list || !facts.rows) return;
      const weights = box === undefined ? null : box === null ? facts.nodes : facts.rows[box];
      const top = weights && Math.max(...weights, 2000 / weights.length);
      boxes.forEach((element, i) => {
        const share = weights ? weights[i] / top : 0;
        element.querySelector(".heat").style.fillOpacity = i === box ? 0 : 0.55 * share;
        const words = weights && i !== box && weights[i] >= 50 ? `${Math.round(weights[i] / 10)}%` : "";
        element.querySelector(".share").textContent = words;
        element.classList.toggle("pinned", i === box);
        if (weights && box !== null && i !== box) rays.append(ray(boxes.get(box), element, share));
      });
      all(".node", scene).forEach((node) => node.classList.toggle("pinned", Number(node.dataset.box) === box));
      scene.querySelector(".whole").setAttribute("aria-pressed", String(box === null));
      if (!weights) {
        const hint = document.createElement("p");
        hint.className = "none";
        hint.textContent = "Click an object, or press Enter on it, to see which others it attends to.";
        list.replaceChildren(hint);
        return;
      }
      const title = document.createElement("p");
      title.textContent = box === null ? "The graph vector attends to" : `${facts.names[box]} attends to`;
      const rows = document.createElement("ol");
      weights.map((w, i) => [w, i]).filter(([, i]) => i !== box).sort((a, b) => b[0] - a[0]).slice(0, 6)
        .forEach(([w, i]) => rows.append(line(facts.names[i], w / 1000)));
      list.replaceChildren(title, rows);
    };

    const centre = (element) => {
      const { x, y, width, height } = element.querySelector(".line");
      return [x.baseVal.value + width.baseVal.value / 2, y.baseVal.value + height.baseVal.value / 2];
    };
    const ray = (from, to, share) => {
      const element = document.createElementNS(SVG, "line");
      const [[x1, y1], [x2, y2]] = [centre(from), centre(to)];
      Object.entries({ x1, y1, x2, y2, "stroke-width": 0.5 + 6 * share }).forEach(([k, v]) => element.setAttribute(k, v));
      return element;
    };
    const line = (name, share) => {
      const row = document.createElement("li");
      const [words, number] = ["name", "number"].map((kind) => {
        const span = document.createElement("span");
        span.className = kind;
        return span;
      });
      words.textContent = name;
      number.textContent = `${(100 * share).toFixed(0)}%`;
      const bar = document.createElementNS(SVG, "svg");
      bar.setAttribute("viewBox", "0 0 100 8");
      bar.setAttribute("preserveAspectRatio", "none");
      const rect = document.createElementNS(SVG, "rect");
      Object.entries({ width: 100 * share, height: 8, rx: 2 }).forEach(([k, v]) => rect.setAttribute(k, v));
      bar.append(rect);
      row.append(words, bar, number);
      return row;
    };

    const pin = (element) => {
      const again = pinned === element;
      pinned = again ? null : element;
      const box = again || !element || element.dataset.link !== undefined ? undefined : Number(element.dataset.box);
      heat(box !== undefined && facts.rows ? box : undefined);
      rest();
    };
    const active = all(".box, .tag, .node, .pill, button.triplet", scene);
    active.forEach((element) => {
      element.addEventListener("click", () => pin(element.matches(".tag") ? boxes.get(Number(element.dataset.box)) : element), { signal });
      element.addEventListener("pointerenter", () => { if (!pinned) lightOf(element); }, { signal });
      element.addEventListener("pointerleave", () => { if (!pinned) rest(); }, { signal });
      if (element.matches(".tag")) return;  // a stop of the Tab key each, if it listened to focus
      element.addEventListener("focus", () => { if (!pinned) lightOf(element); }, { signal });
      element.addEventListener("blur", () => { if (!pinned) rest(); }, { signal });
      if (element.tagName !== "BUTTON") element.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pin(element); }
      }, { signal });
    });
    const inOrder = (some) => some.sort((a, b) => Number(a.dataset.box) - Number(b.dataset.box));
    roving(inOrder(all(".box", scene)));
    roving(all(".node, .pill", scene));
    roving(all("button.triplet", scene));
    scene.querySelector(".whole")?.addEventListener("click", (event) => {
      const off = event.target.getAttribute("aria-pressed") === "true";
      pinned = off ? null : {};
      dark();
      heat(off ? undefined : null);
    }, { signal });
    scene.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && pinned) { pinned = null; heat(undefined); dark(); }
    }, { signal });
  };

  return { all, roving, theme, wire };
})();
