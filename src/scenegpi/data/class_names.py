"""Class names for detector output: number -> name, from the files in which people keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenegpi.data.limits import check_names, file_vocabulary
from scenegpi.errors import DataError
from scenegpi.files import read_json, read_text
from scenegpi.vocabulary import Vocabulary

Names = Mapping[int, str]
NAME_FILES = ("classes.txt", "obj.names", "names.txt", "data.yaml", "data.yml")
MAX_BYTES = 2**24
YAML_BYTES = 2**18
"""The parser takes seconds for so much, and no list of class names comes near it."""


def read_names_file(path: Path) -> Names:
    """Class names: one per line; JSON, a list, an object or COCO's `categories`; the `names` of a YOLO data.yaml."""
    if path.suffix == ".json":
        data = read_json(path, MAX_BYTES)
        rows = data.get("categories", data) if isinstance(data, dict) else data
        check_names(path, len(rows) if isinstance(rows, list | dict) else 0, "names")
        pairs = _json_names(data)
    elif path.suffix in (".yaml", ".yml"):
        pairs = list(yaml_names(path, read_text(path, YAML_BYTES)).items())
    else:
        text = read_text(path, MAX_BYTES)
        check_names(path, text.count("\n"), "names")
        pairs = list(enumerate(line.strip() for line in text.rstrip().splitlines()))
    try:
        names = {int(key): name for key, name in pairs}
    except (TypeError, ValueError, OverflowError):  # infinity is no number of a class
        names = {}
    if not names or not all(isinstance(name, str) and name for name in names.values()):
        raise DataError(path, "expected class names: one per line, a JSON list, or number -> name")
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
    return file_vocabulary(path, [names[i] for i in order]), {key: i for i, key in enumerate(order)}


def _json_names(data: Any) -> list[tuple[Any, Any]]:
    if isinstance(data, dict) and isinstance(data.get("categories"), list):
        return [(row.get("id"), row.get("name")) for row in data["categories"] if isinstance(row, dict)]
    if isinstance(data, list):
        return list(enumerate(data))
    return list(data.items()) if isinstance(data, dict) else []


def yaml_names(path: str | Path, text: str) -> dict[str, str]:
    """The `names` of a YOLO data.yaml: a list, or number -> name, in any of YAML's ways to write them.

    The text is parsed but no values are made of it: all names stay text, also `on`, `no` and 1, nothing in it can make
    an object of Python, and aliases are never unfolded.
    """
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except RecursionError:
        raise DataError(path, "YAML: nested too deeply") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = "" if mark is None else f" line {mark.line + 1}:"
        raise DataError(path, f"YAML:{where} {problem or getattr(error, 'reason', 'cannot be parsed')}") from None
    fields = root.value if isinstance(root, yaml.MappingNode) else []
    names = next((value for key, value in fields if key.value == "names"), None)
    if isinstance(names, yaml.SequenceNode):
        pairs = [(str(i), value) for i, value in enumerate(names.value)]
    elif isinstance(names, yaml.MappingNode):
        pairs = [(key.value, value) for key, value in names.value]
    else:
        raise DataError(path, "names: " + ("missing" if names is None else "expected a list, or number -> name"))
    for key, name in pairs:
        line = f"(line {name.start_mark.line + 1})"
        if not isinstance(key, str) or not key.isdecimal():
            raise DataError(path, f"names: expected numbers before the names, found {key!r:.40} {line}")
        if not isinstance(name, yaml.ScalarNode) or not name.value:
            raise DataError(path, f"names[{key:.20}]: expected a name {line}")
    return {key: name.value for key, name in pairs}
