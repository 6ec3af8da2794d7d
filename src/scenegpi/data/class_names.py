"""Class names for detector output: number -> name, from the files in which people keep them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenegpi.data.limits import check_names
from scenegpi.errors import DataError
from scenegpi.files import read_json, read_text
from scenegpi.vocabulary import Vocabulary

Names = Mapping[int, str]
NAME_FILES = ("classes.txt", "obj.names", "names.txt", "data.yaml", "data.yml")
MAX_BYTES = 2**24
ITEM = re.compile(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""")  # up to a comma that is not quoted


def read_names_file(path: Path) -> Names:
    """Class names: one a line; a JSON list or object; COCO JSON with `categories`; the `names` of a YOLO data.yaml."""
    if path.suffix == ".json":
        data = read_json(path, MAX_BYTES)
        rows = data.get("categories", data) if isinstance(data, dict) else data
        check_names(path, len(rows) if isinstance(rows, list | dict) else 0, "names")
        pairs = _json_names(data)
    else:
        text = read_text(path, MAX_BYTES)
        check_names(path, text.count("\n"), "names")
        yaml = path.suffix in (".yaml", ".yml")
        pairs = _yaml_names(text) if yaml else list(enumerate(line.strip() for line in text.rstrip().splitlines()))
    try:
        names = {int(key): name for key, name in pairs}
    except (TypeError, ValueError, OverflowError):  # infinity is no number of a class
        names = {}
    if not names or not all(isinstance(name, str) and name for name in names.values()):
        raise DataError(path, "expected class names: one a line, a JSON list, or number -> name")
    return names


def vocabulary_of(path: Path, ids: Sequence[int], names: Names | None) -> tuple[Vocabulary, dict[int, int]]:
    """The vocabulary, and class number -> label. Without names, class 7 is called "class 7"."""
    check_names(path, len(ids), "classes")
    if names is None:
        names = {i: f"class {i}" for i in ids}
    check_names(path, len(names), "names")
    unnamed = next((i for i in ids if i not in names), None)
    if unnamed is not None:
        raise DataError(path, f"category {unnamed}: has no name among the {len(names)} given")
    order = sorted(names)
    try:
        return Vocabulary([names[i] for i in order]), {key: i for i, key in enumerate(order)}
    except ValueError as error:
        raise DataError(path, str(error)) from None


def _json_names(data: Any) -> list[tuple[Any, Any]]:
    if isinstance(data, dict) and isinstance(data.get("categories"), list):
        return [(row.get("id"), row.get("name")) for row in data["categories"] if isinstance(row, dict)]
    if isinstance(data, list):
        return list(enumerate(data))
    return list(data.items()) if isinstance(data, dict) else []


def _yaml_names(text: str) -> list[tuple[Any, Any]]:
    """The `names` entry in the ways people write it: [a, b], {0: a}, a dash a line, or `0: a` a line."""
    text = re.sub(r"(^|\s)#.*$", "", text, flags=re.M)
    inline = re.search(r"^names:\s*([\[{])([^\]}]*)", text, re.M)
    if inline:
        items = [item for item in ITEM.findall(inline[2]) if item.strip()]
        return list(enumerate(map(_plain, items))) if inline[1] == "[" else [_entry(item) for item in items]
    block = re.search(r"^names:\s*\n((?:[ \t]*(?:-|['\"]?\d+['\"]?:).*\n?)+)", text, re.M)
    if not block:
        return []
    lines = [line.strip() for line in block[1].splitlines() if line.strip()]
    if lines[0].startswith("-"):
        return list(enumerate(_plain(line[1:]) for line in lines))
    return [_entry(line) for line in lines]


def _entry(text: str) -> tuple[str, str]:
    key, _, name = text.partition(":")
    return _plain(key), _plain(name)


def _plain(text: str) -> str:
    return text.strip().strip("'\"")
