"""Recipes: the TOML files that the shipped models were trained with; and the settings of a run from any such file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError, OptionError
from scenegpi.files import read_text
from scenegpi.models.presets import preset
from scenegpi.options import override
from scenegpi.training.config import AugmentConfig, StageConfig, TrainConfig

MAX_BYTES = 1 << 20
MAX_DOTS = 100
_SHARED = ("loss", "optim", "augment")
WHOLE_SYSTEM = StageConfig(epochs=10, augment=AugmentConfig(drop=0.5))
"""A compared system without a baseline: as many epochs as the two stages have, with the context's augmentation."""


def recipe_files() -> dict[str, Path]:
    """Name -> file, in alphabetical order."""
    folder = Path(str(files("scenegpi.training"))) / "recipes"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_recipe(name: str) -> Path:
    """The file of a recipe; DataError that lists the recipes if there is no such name."""
    found = recipe_files()
    if name not in found:
        raise DataError(name, f"no such recipe; choose one of {', '.join(found)}")
    return found[name]


def recipe_titles() -> dict[str, str]:
    """Name -> what it makes: the comment that its file starts with."""
    return {name: path.read_text("utf-8").splitlines()[0].removeprefix("# ") for name, path in recipe_files().items()}


def read_config(path: str | Path | None, options: dict[str, Any]) -> TrainConfig:
    """The settings of a TOML file, if any, overridden by `options`; DataError that names the file and the field."""
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


def train_config(values: Mapping[str, Any]) -> TrainConfig:
    """From the tables of a TOML file; the model starts from its preset. OptionError that names the field.

    A task that is not given is "both" for a model that uses photos, else PredCls.
    """
    if not isinstance(values, Mapping):
        raise OptionError(f"expected a table of settings, found {type(values).__name__}")
    named = values.get("preset", TrainConfig.preset)
    if not isinstance(named, str):
        raise OptionError(f"preset: expected a string, found {type(named).__name__}")
    shared = {key: values[key] for key in _SHARED if key in values}
    override(StageConfig(), shared, "")  # so that errors name the table that the user wrote
    rest = {key: value for key, value in values.items() if key not in (*_SHARED, "epochs")}
    for stage in ("baseline", "context"):
        rest[stage] = merged(shared, rest.get(stage, {}))
    start = replace(TrainConfig(), preset=named, model=preset(named))
    if start.model.system is not None:
        start = replace(start, baseline=WHOLE_SYSTEM)
    config = override(start, rest, "")
    if config.model.vision is not None and "task" not in values:
        config = replace(config, task="both")
    return config if values.get("epochs") is None else with_epochs(config, values["epochs"])


def with_epochs(config: TrainConfig, epochs: Any) -> TrainConfig:
    """The same run with this many epochs in all, divided between its stages in the same proportion."""
    whole = override(config.stage, {"epochs": epochs}, "").epochs
    if not config.model.two_stages:
        return replace(config, baseline=replace(config.baseline, epochs=whole))
    if config.start is not None:
        return replace(config, context=replace(config.context, epochs=whole))
    if whole < 2:
        raise OptionError(
            "epochs: at least 2, one each for baseline and context (or use another run's baseline: start)"
        )
    share = config.baseline.epochs / (config.baseline.epochs + config.context.epochs)
    first = min(max(round(share * whole), 1), whole - 1)
    baseline, context = replace(config.baseline, epochs=first), replace(config.context, epochs=whole - first)
    return replace(config, baseline=baseline, context=context)


def merged(below: Any, above: Any) -> Any:
    """Merges two nested tables; where both have a value, that of `above` wins."""
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{key: merged(below.get(key), value) for key, value in above.items()}}


def read_toml(path: str | Path) -> dict[str, Any]:
    """The values of a TOML file; DataError with the line if it is invalid."""
    path = Path(path)
    text = read_text(path, MAX_BYTES)
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MAX_DOTS:  # the time for a key grows with the square of its parts
            raise DataError(path, f"line {number}: a key of more than {MAX_DOTS} parts")
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        said = "a whole number with thousands of digits" if "integer string" in str(error) else error
        raise DataError(path, f"is not TOML ({said})") from None
    large = _large_number(values)
    if large:
        raise DataError(path, f"{large}: a whole number of more than 64 bits")
    return values


def _large_number(values: Any, where: str = "") -> str | None:
    """The name of a number that no setting can hold, or None."""
    if isinstance(values, int) and values.bit_length() > 63:
        return where
    rows = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    found = (_large_number(value, f"{where}.{key}" if where else str(key)) for key, value in rows)
    return next((each for each in found if each), None)
