// The page: which part is shown, by the address.
import { Annotate } from "./annotate.js";
import { wireApiUse } from "./apiuse.js";
import { Browse } from "./browse.js";
import { askJson, byId, say } from "./page.js";
import { Try } from "./try.js";

const PARTS = ["try", "browse", "annotate"];

const start = async () => {
  document.documentElement.classList.add("js");
  gallery.theme(byId("theme"));
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);  // the token is a cookie now
  const library = await askJson("/api/library");
  byId("annotate-link").hidden = !library.annotate;
  wireApiUse();
  const browse = new Browse(library);
  const parts = { try: new Try(library, browse.run), browse, annotate: library.annotate ? new Annotate(library) : null };
  const follow = () => {
    const [part, ...rest] = location.hash.slice(1).split("/");
    const shown = PARTS.includes(part) && parts[part] ? part : library.search ? "browse" : "try";
    if (shown !== "browse") browse.viewer.close();
    PARTS.forEach((name) => { byId(name).hidden = name !== shown; });
    document.body.dataset.part = shown;
    gallery.all("nav a").forEach((link) => {
      if (link.getAttribute("href") === `#${shown}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
    document.title = `${{ try: "Try", browse: "Browse", annotate: "Annotate" }[shown]} · scenegpi studio`;
    say("");
    parts[shown].open(rest.join("/"));
  };
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });  // no change of the address
  addEventListener("hashchange", follow);
  follow();
};

start().catch((problem) => say(problem.message));
