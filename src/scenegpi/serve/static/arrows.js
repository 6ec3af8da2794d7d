// Relations as arrows from box to box on the photo, each with its predicate.
import { svg, textWidth } from "./page.js";

const LABELLED = 12;
const WORDED = 150;

const centre = ({ x, y, width, height }) => [x + width / 2, y + height / 2];

// `links` are { subject, object, predicate, k }, `frame(box)` where a box is, `taken` where names are.
export const arrowParts = (links, frame, unit, taken) => {
  const pairs = new Map();
  const parts = links.map((link) => {
    const pair = [link.subject, link.object].sort((a, b) => a - b).join(" ");
    pairs.set(pair, (pairs.get(pair) || 0) + 1);
    return arrow(link, frame, unit, pairs.get(pair), taken, links.length <= LABELLED, links.length <= WORDED || link.chosen);
  });
  return [...parts.map(([line]) => line), ...parts.flatMap(([, words]) => words || [])];  // no line crosses a word
};

const arrow = ({ subject, object, predicate, k, chosen }, frame, unit, turn, taken, labelled, worded) => {
  const [[x1, y1], [x2, y2]] = [centre(frame(subject)), centre(frame(object))];
  const far = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [nx, ny] = [(y1 - y2) / far, (x2 - x1) / far];
  const bend = Math.min(0.18 * far, 40 * unit) + 16 * unit * (turn - 1);  // several relations of a pair lie beside each other
  const [cx, cy] = [(x1 + x2) / 2 + nx * bend, (y1 + y2) / 2 + ny * bend];
  const at = (t) => [(1 - t) ** 2 * x1 + 2 * t * (1 - t) * cx + t * t * x2, (1 - t) ** 2 * y1 + 2 * t * (1 - t) * cy + t * t * y2];
  const end = Math.max(0.5, 1 - 4 * unit / far);
  const [ex, ey] = at(end);
  const [bx, by] = at(Math.max(0, end - 12 * unit / far));
  const length = Math.hypot(ex - bx, ey - by) || 1;
  const [dx, dy] = [(ex - bx) / length * 10 * unit, (ey - by) / length * 10 * unit];
  const tip = `M${ex} ${ey}L${ex - dx - dy * 0.45} ${ey - dy + dx * 0.45}L${ex - dx + dy * 0.45} ${ey - dy - dx * 0.45}ZM${x1 - 3 * unit} ${y1}a${3 * unit} ${3 * unit} 0 1 0 ${6 * unit} 0a${3 * unit} ${3 * unit} 0 1 0 ${-6 * unit} 0`;  // and a dot where it starts
  const line = `M${x1} ${y1}Q${cx} ${cy} ${x2} ${y2}`;
  const facts = { "data-link": k, "aria-hidden": "true" };
  const drawn = svg("g", { ...facts, class: `arrow${chosen ? " chosen" : ""}` }, svg("path", { class: "under", d: line }), svg("path", { class: "line", d: line }), svg("path", { class: "tip", d: tip }));
  if (!worded) return [drawn];
  const font = 12 * unit;
  const [mx, my] = at(0.5);
  const [wide, tall] = [textWidth(predicate) * font + 10 * unit, font * 1.5];
  const free = [0, 1, -1, 2, -2].map((step) => my - tall / 2 + step * tall).find((y) => !taken.some((t) => mx - wide / 2 < t.x + t.wide && t.x < mx + wide / 2 && y < t.y + t.tall && t.y < y + tall)) ?? my - tall / 2;
  if (labelled) taken.push({ x: mx - wide / 2, y: free, wide, tall });
  const words = svg("text", { x: mx, y: free + tall * 0.7, "font-size": font, "text-anchor": "middle" });
  words.textContent = predicate;
  return [drawn, svg("g", { ...facts, class: `arrow said-on${labelled ? " labelled" : ""}${chosen ? " chosen" : ""}` }, svg("rect", { x: mx - wide / 2, y: free, width: wide, height: tall, rx: tall / 2 }), words)];
};
