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
    return schema.type === "array" ? `list of ${kind(schema.items)}` : schema.type || "anything";
  };
  const bounds = (schema) => {
    const each = [schema, ...(schema.anyOf || [])].find((one) => "minimum" in one || "maximum" in one || "maxLength" in one || "maxItems" in one);
    if (!each) return "";
    const words = { minimum: "at least", maximum: "at most", maxLength: "characters at most", maxItems: "items at most" };
    return Object.entries(words).filter(([key]) => key in each).map(([key, text]) => `${text} ${each[key].toLocaleString("en")}`).join(", ");
  };
  const row = (name, schema, about, required) => el("tr", {}, el("th", {}, el("code", {}, name), required ? " *" : ""), el("td", {}, el("code", {}, kind(schema))),
    el("td", {}, [about, bounds(schema), schema.default !== undefined && schema.default !== null ? `by default ${JSON.stringify(schema.default)}` : ""].filter(Boolean).join("; ")));
  const table = (schema) => el("table", {}, ...Object.entries(schema.properties || {}).map(([name, each]) => row(name, each, each.description || "", schema.required?.includes(name))));
  byId("about").textContent = `${api.info.title} ${api.info.version}. ${api.info.description}`;
  Object.entries(api.paths).forEach(([path, methods]) => Object.entries(methods).forEach(([method, each]) => {
    const parts = [el("h2", {}, el("span", { class: `method ${method}` }, method.toUpperCase()), el("code", {}, path)), el("p", {}, each.description || each.summary || "")];
    if (each.parameters) parts.push(el("table", {}, ...each.parameters.map((one) => row(one.name, one.schema, one.description || "", one.required))));
    const body = target(each.requestBody?.content?.["application/json"]?.schema);
    if (body) parts.push(el("p", {}, "The body, JSON:"), table(body));
    const answer = target(each.responses?.[200]?.content?.["application/json"]?.schema);
    if (answer?.properties) parts.push(el("p", {}, "The answer:"), table(answer));
    byId("paths").append(el("section", { class: "api" }, ...parts));
  }));
};

start().catch((problem) => say(problem.message));
