"""Options from files, without trust: a frozen dataclass, changed field by field from plain JSON or TOML values.

    options = override(BaselineOptions(), {"hidden": 256}, "model.baseline")

An unknown key, a value of another type, or a number outside the field's bounds raises `OptionError`, one line that
names the field. Bounds are declared with the field: `bounded(256, 1, 4096)`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field, fields, is_dataclass, replace
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from scenegpi.errors import OptionError

T = TypeVar("T")
LONGEST_LIST = 16
LONGEST_TEXT = 4096
LARGEST_NUMBER = 2**31 - 1


def bounded(default: Any, least: float, most: float) -> Any:
    """A dataclass field of numbers (one, or a tuple of them) within [least, most]."""
    return field(default=default, metadata={"least": least, "most": most})


def override(default: T, data: Any, where: str) -> T:
    """`default`, a dataclass instance, with the fields that `data` names changed; `where` names it in errors."""
    if not isinstance(data, Mapping):
        raise OptionError(f"{where}: expected a table of settings, found {_kind(data)}")
    known = {each.name: each for each in fields(default)}  # type: ignore[arg-type]
    hints = get_type_hints(type(default))
    changes: dict[str, Any] = {}
    for key, value in data.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in known:
            raise OptionError(f"{path[:80]}: no such setting (known: {', '.join(known)})")
        changes[key] = _checked(value, hints[key], getattr(default, key), path, known[key].metadata)
    try:
        return replace(default, **changes)  # type: ignore[type-var]
    except ValueError as error:
        raise OptionError(f"{where}: {error}") from None


def check_fields(options: Any) -> None:
    """OptionError unless every field of a dataclass instance has a value of its type within its bounds."""
    hints = get_type_hints(type(options))
    for each in fields(options):
        _checked(getattr(options, each.name), hints[each.name], None, each.name, each.metadata)


def plain(options: Any) -> dict[str, Any]:
    """JSON-ready form, read back by `override`."""
    settings: dict[str, Any] = json.loads(json.dumps(asdict(options)))  # tuples become lists
    return settings


def _checked(value: Any, hint: Any, default: Any, path: str, bounds: Mapping[str, Any]) -> Any:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        if value is None and NoneType in get_args(hint):
            return None
        hint = next(each for each in get_args(hint) if each is not NoneType)
        origin = get_origin(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        if hasattr(hint, "of_kind"):
            default = _of_kind(hint, value, default, path)
        return override(hint() if default is None else default, value, path)
    if origin is Literal:
        if value not in get_args(hint):
            raise OptionError(f"{path}: {value!r:.40} is not one of {', '.join(map(str, get_args(hint)))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple) or len(value) > LONGEST_LIST:
            raise OptionError(f"{path}: expected a list of at most {LONGEST_LIST}, found {_kind(value)}")
        return tuple(_checked(each, get_args(hint)[0], None, f"{path}[{k}]", bounds) for k, each in enumerate(value))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) <= LARGEST_NUMBER else value
    if type(value) is not hint:
        raise OptionError(f"{path}: expected {_NAMES.get(hint, hint)}, found {_kind(value)}")
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise OptionError(f"{path}: too long ({len(value):,} characters)")
    if isinstance(value, int | float) and not isinstance(value, bool):
        least, most = bounds.get("least", -LARGEST_NUMBER), bounds.get("most", LARGEST_NUMBER)
        if not isfinite(value) or not least <= value <= most:
            raise OptionError(f"{path}: {value!r:.40} is not between {least:g} and {most:g}")
    return value


def _of_kind(hint: Any, value: Any, default: Any, path: str) -> Any:
    """Settings with a choice of kinds name theirs in `kind`; the defaults are `default`, or those of that kind."""
    if not isinstance(value, Mapping):
        raise OptionError(f"{path}: expected a table of settings, found {_kind(value)}")
    known = getattr(default, "kind", None)
    kind = value.get("kind", known)
    if kind is None:
        raise OptionError(f"{path}.kind: missing")
    try:
        return default if kind == known else hint.of_kind(kind)
    except OptionError as error:
        raise OptionError(f"{path}.{error}") from None


_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def _kind(value: Any) -> str:
    return f"{value!r:.40}" if isinstance(value, int | float | str | bool) else type(value).__name__
