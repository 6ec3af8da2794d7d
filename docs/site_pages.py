"""What the site shows besides docs/: the README as its first page, and the files of the repository that pages link to.

A page links to its neighbours as they lie in the repository, so that links work there; here they are led into the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()([^)#:\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Adds README.md as index.md, and each file outside docs/ that a page links to, by its path in the repository."""
    texts = {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages()}
    files.append(_page(config, "README.md", texts))
    for origin in [name for name in texts if name != "README.md"]:
        for _, target in LINK.findall(texts[origin]):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
            if _outside(path) and files.get_file_from_path(_place(path)) is None:
                files.append(_page(config, path, texts))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leads links from where a page lies in the repository to where things lie in the site."""
    origin = _origin(page.file.src_uri)
    here = posixpath.dirname(page.file.src_uri)

    def led(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[2]))
        return match[1] + posixpath.relpath(_place(path), here or ".")

    return LINK.sub(led, markdown)


def _outside(path: str) -> bool:
    return not path.startswith(("docs/", "..")) and path != "README.md" and (ROOT / path).is_file()


def _place(path: str) -> str:
    """Where a file of the repository lies in the site."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repository/{path}"


def _origin(place: str) -> str:
    """Where a file of the site lies in the repository."""
    if place == "index.md":
        return "README.md"
    return place.removeprefix("repository/") if place.startswith("repository/") else f"docs/{place}"


def _page(config: Any, path: str, texts: dict[str, str]) -> File:
    content = (ROOT / path).read_bytes()
    if path.endswith(".md"):
        texts[path] = content.decode()
    return File.generated(config, _place(path), content=content)
