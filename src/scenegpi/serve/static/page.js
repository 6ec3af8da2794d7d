// Elements, requests, and how a page says what went wrong.
export const SVG = "http://www.w3.org/2000/svg";
export const byId = (id) => document.getElementById(id);

// An element with attributes and children; text is text, never markup.
export const el = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => {
    if (value === true) node.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  });
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};

export const svg = (name, attributes = {}, ...children) => {
  const node = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => { if (value !== null) node.setAttribute(key, value); });
  node.append(...children);
  return node;
};

export const say = (text) => { byId("status").textContent = text || ""; };

export class Problem extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

// JSON in, JSON out; a problem carries the server's one line.
export const ask = async (path, { method = "GET", body, raw, signal, keepalive } = {}) => {
  let response;
  try {
    response = await fetch(path, {
      method, signal, keepalive,
      headers: raw ? { "content-type": "application/octet-stream" } : body === undefined ? {} : { "content-type": "application/json" },
      body: raw || (body === undefined ? undefined : JSON.stringify(body)),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "the server does not answer");
  }
  if (!response.ok) throw new Problem(response.status, await reason(response));
  return response;
};
export const askJson = async (path, options) => (await ask(path, options)).json();

const reason = async (response) => {
  try {
    const { detail } = await response.json();
    if (typeof detail === "string") return detail;
    return detail.map((each) => `${each.loc.slice(1).join(".")}: ${each.msg}`).join("; ");
  } catch {
    return `the server answers ${response.status}`;
  }
};

export const save = (blob, name) => {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

// Markup that the server drew (the report's own drawing code, which escapes all text).
export const markup = (text) => new DOMParser().parseFromString(text, "text/html").body.firstElementChild;

// A row of a list of shares: name, bar, percent.
export const bar = (name, share, extra = []) => el("li", {},
  el("span", { class: "name" }, ...extra, name),
  svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { width: Math.max(0.5, 100 * share), height: 8, rx: 2 })),
  el("span", { class: "number" }, `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`));

// Names with a number where several are the same: person 1, person 2.
export const numbered = (names) => {
  const counts = new Map();
  names.forEach((name) => counts.set(name, (counts.get(name) || 0) + 1));
  const seen = new Map();
  return names.map((name) => {
    seen.set(name, (seen.get(name) || 0) + 1);
    return counts.get(name) > 1 ? `${name} ${seen.get(name)}` : name;
  });
};

// Of a text at font size 1, without asking the page to lay itself out.
const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();
export const textWidth = (text) => {
  if (!widths.has(text)) {
    pen.font = `650 100px ${getComputedStyle(document.body).fontFamily}`;
    widths.set(text, pen.measureText(text).width / 100);
  }
  return widths.get(text);
};

// Attributes are names, or names with scores.
export const described = (attributes) => (Array.isArray(attributes) ? attributes : Object.keys(attributes || {}));

// The small picture of an image in a list, or its name where it has none or it cannot be read.
export const thumbnail = ({ image, photo, file, key }) => {
  const name = () => el("span", { class: "blank-name" }, file || key);
  if (!photo) return name();
  const picture = el("img", { src: `/api/images/${image}/photo?size=thumb`, alt: "", loading: "lazy" });
  picture.addEventListener("error", () => picture.replaceWith(name()));
  return picture;
};

// What follows "#": the part, and what the part makes of the rest; an address that cannot be read is empty.
export const decoded = (text) => { try { return decodeURIComponent(text); } catch { return ""; } };
