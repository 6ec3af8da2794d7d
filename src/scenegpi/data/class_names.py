"""Class names for detector output: number -> name, from the files in which people keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenegpi.data.limits import check_names, file_vocabulary
from scenegpi.data.named import whole
from scenegpi.errors import DataError
from scenegpi.files import read_json, read_text
from scenegpi.vocabulary import Vocabulary

Names = Mapping[int, str]
NAME_FILES = ("classes.txt", "obj.names", "names.txt", "data.yaml", "data.yml")
MAX_BYTES = 2**24
YAML_BYTES = 2**18
"""Largest YAML file: parsing this much takes seconds, and lists of class names are far smaller."""
MAX_DIGITS = 9


def read_names_file(path: Path) -> Names:
    """Class names: one per line; JSON, a list, an object or COCO's `categories`; the `names` of a YOLO data.yaml."""
    if path.suffix in (".yaml", ".yml"):
        return yaml_names(path, read_text(path, YAML_BYTES))
    if path.suffix != ".json":
        return _numbered(path, [line.strip() for line in read_text(path, MAX_BYTES).rstrip().splitlines()])
    data = read_json(path, MAX_BYTES)
    if isinstance(data, dict) and isinstance(data.get("categories"), list):
        data = {str(whole(row.get("id"))): row.get("name") for row in data["categories"] if isinstance(row, dict)}
    return _numbered(path, data)


def yaml_names(path: str | Path, text: str) -> Names:
    """The `names` of a YOLO data.yaml: a list, or number -> name, in any YAML notation.

    All names stay text, including `on`, `no` and 1, and no tag can create a Python object.
    """
    import yaml

    try:
        data = yaml.load(text, Loader=yaml.BaseLoader)
    except RecursionError:
        raise DataError(path, "YAML: nested too deeply") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = "" if mark is None else f" line {mark.line + 1}:"
        raise DataError(path, f"YAML:{where} {problem or getattr(error, 'reason', 'cannot be parsed')}") from None
    if not isinstance(data, dict) or "names" not in data:
        raise DataError(path, "names: missing")
    return _numbered(path, data["names"])


def _numbered(path: str | Path, names: Any) -> Names:
    if not isinstance(names, list | dict) or not names:
        raise DataError(path, "expected class names: one per line, a list, or number -> name")
    check_names(path, len(names), "names")
    found = {}
    for key, name in names.items() if isinstance(names, dict) else enumerate(names):
        if not str(key).isdecimal() or len(str(key)) > MAX_DIGITS:
            raise DataError(path, f"names: expected numbers before the names, found {key!r:.40}")
        if not isinstance(name, str) or not name:
            raise DataError(path, f"names[{key}]: expected a name")  # its value is not shown: aliases may make it huge
        found[int(key)] = name
    return found


def in_order(path: str | Path, names: Names) -> tuple[str, ...]:
    """The names from number 0 on; number 7 without a name is called "class 7". DataError if they are too many."""
    check_names(path, max(names, default=0), "names")
    return tuple(names.get(k, f"class {k}") for k in range(max(names, default=-1) + 1))


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
