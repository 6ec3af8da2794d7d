"""Recipes: the TOML files by which the shipped models were made, and the reader of any such file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError, OptionError
from scenegpi.files import read_text
from scenegpi.models.presets import preset
from scenegpi.training.config import TrainConfig, merged, train_config

MAX_BYTES = 1 << 20
MAX_DOTS = 100


def recipe_files() -> dict[str, Path]:
    """Name -> file, in alphabetical order."""
    folder = Path(str(files("scenegpi.training"))) / "recipes"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_recipe(name: str) -> Path:
    """The file of a recipe; DataError with the names that there are."""
    found = recipe_files()
    if name not in found:
        raise DataError(name, f"no such recipe (there are {', '.join(found)})")
    return found[name]


def recipe_titles() -> dict[str, str]:
    """Name -> what it makes: the comment that its file starts with."""
    return {name: path.read_text("utf-8").splitlines()[0].removeprefix("# ") for name, path in recipe_files().items()}


def read_config(path: str | Path | None, options: dict[str, Any]) -> TrainConfig:
    """The settings of a TOML file, if any, with `options` above them; DataError that names the file and the field."""
    values = {} if path is None else read_toml(path)
    try:
        return train_config(merged(_fitting(values, options), options))
    except OptionError as error:
        found: Any = options
        for key in str(error).partition(":")[0].split("."):
            found = found.get(key) if isinstance(found, dict) else None
        raise DataError("options" if path is None or found is not None else path, str(error)) from None


def _fitting(values: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Without the network's settings where the options name a preset with a network of another kind."""
    model = values.get("model")
    if isinstance(model, dict) and isinstance(options.get("preset"), str):
        before, after = (preset(name).network for name in (values.get("preset", TrainConfig.preset), options["preset"]))
        if getattr(before, "kind", None) != getattr(after, "kind", None):
            return values | {"model": {key: value for key, value in model.items() if key != "network"}}
    return values


def read_toml(path: str | Path) -> dict[str, Any]:
    """The values of a TOML file; DataError with the line where it is none."""
    path = Path(path)
    text = read_text(path, MAX_BYTES)
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MAX_DOTS:  # the time for a key grows with the square of its parts
            raise DataError(path, f"line {number}: a key of more than {MAX_DOTS} parts")
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        said = "a whole number of thousands of digits" if "integer string" in str(error) else error
        raise DataError(path, f"is not TOML ({said})") from None
    large = _large_number(values)
    if large:
        raise DataError(path, f"{large}: a whole number of more than 64 bits")
    return values


def _large_number(values: Any, where: str = "") -> str | None:
    """The name of a number that no setting can hold, if there is one."""
    if isinstance(values, int) and values.bit_length() > 63:
        return where
    rows = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    found = (_large_number(value, f"{where}.{key}" if where else str(key)) for key, value in rows)
    return next((each for each in found if each), None)
