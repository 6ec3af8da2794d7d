"""Recipes: the TOML files by which the shipped models were made, and the reader of any such file."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError, OptionError
from scenegpi.files import check_file, reason
from scenegpi.training.config import TrainConfig, merged, train_config

MAX_BYTES = 1 << 20


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
        return train_config(merged(values, options))
    except OptionError as error:
        found: Any = options
        for key in str(error).partition(":")[0].split("."):
            found = found.get(key) if isinstance(found, dict) else None
        raise DataError("options" if path is None or found is not None else path, str(error)) from None


def read_toml(path: str | Path) -> dict[str, Any]:
    """The values of a TOML file; DataError with the line where it is none."""
    path = Path(path)
    check_file(path, MAX_BYTES)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(path, f"cannot be read ({reason(error)})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(path, f"is not TOML ({error})") from None
