// The interface from /openapi.json: paths, parameters, bodies, answers.
import { askJson, byId, el, say } from "./page.js";

const start = async () => {
  gallery.theme(byId("theme"));
  const api = await askJson("/openapi.json");
  const target = (schema) => (schema?.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema);
  const kind = (schema) => {
    if (!schema) return "";
    if (schema.$ref) return schema.$ref.split("/").pop();
    if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
    if (schema.enum) return schema.enum.map((each) => `"${each}"`).join(", ");
    if (schema.const) return `"${schema.const}"`;
    if (schema.prefixItems) return `[${schema.prefixItems.map(kind).join(", ")}]`;
    if (schema.type === "array") return `list of ${schema.items?.anyOf ? `(${kind(schema.items)})` : kind(schema.items)}`;
    return schema.type || "anything";
  };
  const bounds = (schema) => {
    const { minimum, maximum, maxLength, maxItems } = Object.assign({}, ...(schema.anyOf || []), schema);
    const number = (value) => value.toLocaleString("en");
    const range = maximum === undefined ? (minimum === undefined ? "" : `At least ${number(minimum)}.`) : minimum === undefined ? `At most ${number(maximum)}.` : `${number(minimum)} to ${number(maximum)}.`;
    return [range, maxLength ? `At most ${number(maxLength)} characters.` : "", maxItems ? `At most ${number(maxItems)} items.` : ""];
  };
  // A sentence, in which `names` are set as code.
  const sentence = (text) => text.split("`").map((part, k) => (k % 2 ? el("code", {}, part) : part));
  const row = (name, schema, about, required) => {
    const preset = [undefined, null, ""].includes(schema.default) ? "" : `Default: ${JSON.stringify(schema.default)}.`;
    const facts = [about, ...bounds(schema), preset].filter(Boolean).join(" ");
    return el("tr", {}, el("th", {}, el("code", {}, name), required ? " (required)" : ""), el("td", {}, el("code", {}, kind(schema))), el("td", {}, ...sentence(facts)));
  };
  const fields = (schema, required = []) => el("table", {}, ...Object.entries(schema.properties).map(([name, each]) => row(name, each, each.description || "", required.includes(name))));
  byId("about").textContent = `${api.info.title} ${api.info.version}. ${api.info.description}`;
  Object.entries(api.paths).forEach(([path, methods]) => Object.entries(methods).forEach(([method, each]) => {
    const parts = [el("h2", {}, el("span", { class: `method ${method}` }, method.toUpperCase()), el("code", {}, path)), el("p", {}, ...sentence(each.description || each.summary || ""))];
    if (each.parameters) parts.push(el("table", {}, ...each.parameters.map((one) => row(one.name, one.schema, one.description || "", one.required))));
    const body = target(each.requestBody?.content?.["application/json"]?.schema);
    if (body) parts.push(el("p", {}, "Body, JSON:"), fields(body, body.required));
    const answer = target(each.responses?.[200]?.content?.["application/json"]?.schema);
    if (answer?.properties) parts.push(el("p", {}, ...sentence(`Answer: ${answer.description || ""}`)), fields(answer));
    byId("paths").append(el("section", { class: "api" }, ...parts));
  }));
};

start().catch((problem) => say(problem.message));
