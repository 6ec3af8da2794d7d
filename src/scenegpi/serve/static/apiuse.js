// What is on the screen as a request: curl and Python, ready to copy.
import { byId, el } from "./page.js";

const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const curl = ({ path, body, file }) => {
  const url = shell(location.origin + path);
  if (!body) return `curl -s ${url}`;
  const json = JSON.stringify(body);
  const send = `curl -s ${url} -H 'content-type: application/json' -d`;
  if (!file) return `${send} ${shell(json)}`;
  return `base64 -w0 ${shell(file)} | jq -R ${shell(`{photo: .} + ${json}`)} | ${send} @-`;
};

const literal = (value) => {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${literal(each)}`).join(", ")}}`;
  return JSON.stringify(value);
};

const python = ({ path, body, file }) => {
  const url = JSON.stringify(location.origin + path);
  const head = file ? "import base64, json, urllib.request" : "import json, urllib.request";
  if (!body) return `${head}\n\nanswer = json.load(urllib.request.urlopen(${url}))`;
  return [head, "", `body = ${literal(body)}`,
    ...(file ? [`body["photo"] = base64.b64encode(open(${JSON.stringify(file)}, "rb").read()).decode()`] : []),
    `request = urllib.request.Request(${url}, json.dumps(body).encode(), {"content-type": "application/json"})`,
    "answer = json.load(urllib.request.urlopen(request))"].join("\n");
};

const block = (title, text) => {
  const copy = el("button", { type: "button", class: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(text); copy.textContent = "Copied"; } catch { copy.textContent = "Select it and press Ctrl C"; }
  });
  return el("section", {}, el("div", { class: "code-head" }, el("h3", {}, title), copy), el("pre", { tabindex: 0 }, el("code", {}, text)));
};

export const useByApi = (request) => {
  byId("api-code").replaceChildren(block("curl", curl(request)), block("Python", python(request)));
  byId("api-use").showModal();
};

export const wireApiUse = () => byId("api-close").addEventListener("click", () => byId("api-use").close());
