"""The source of a report: a training run, an evaluation's JSON, or a model's folder. Files are not trusted."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError, MetricError
from scenegpi.files import check_file, read_figures
from scenegpi.metrics.protocol import TASK_NAMES, Protocol
from scenegpi.metrics.result import Result

MOST_EPOCHS, MOST_BYTES = 20_000, 1 << 26


@dataclass(frozen=True)
class Source:
    """A run or an evaluation on disk.

    `results` are figures by the name of the data; `log` has one row per epoch; `config` holds the settings of a run;
    `model` can be run again, `predictions` be read again; `predicates` are the model's; `data` and `split` those of an
    evaluation.
    """

    name: str
    kind: str
    path: Path
    results: dict[str, Result] = field(default_factory=dict)
    log: list[dict[str, float]] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    predictions: Path | None = None
    predicates: frozenset[str] = frozenset()
    data: Path | None = None
    split: str | None = None

    @property
    def task(self) -> str:
        """The task of the first figures; PredCls without figures."""
        first = next(iter(self.results.values()), None)
        return "predcls" if first is None else first.protocol.task


def read_source(run: str | Path) -> Source:
    """A run of `train` or `predict`, a model's folder or shipped name, JSON lines, or a file of `scenegpi eval --json`.

    DataError otherwise.
    """
    path = Path(run)
    lines = path / "predictions.jsonl" if path.is_dir() else path
    if lines.suffix == ".jsonl" and lines.is_file():
        name = lines.parent.resolve().name if lines.name == "predictions.jsonl" else path.stem
        return Source(name, "predictions", path, predictions=lines)
    if path.is_file():
        return _evaluation(path)
    if (path / "log.csv").is_file() or ((path / "config.json").is_file() and (path / "model").is_dir()):
        return _run(path)
    from scenegpi.models.shipped import find_model

    folder = find_model(run)
    if not (folder / "config.json").is_file():
        raise DataError(path, "is neither a run of `predict` or `train` nor a model")
    return Source(folder.name, "model", folder, _card_results(folder), model=str(run), predicates=_predicates(folder))


def _run(path: Path) -> Source:
    model, log = path / "model", path / "log.csv"
    return Source(
        path.resolve().name, "training run", path, _card_results(model), _log(log) if log.is_file() else [],
        _json(path / "config.json"), str(model) if model.is_dir() else None, predicates=_predicates(model),
    )  # fmt: skip


def _evaluation(path: Path) -> Source:
    check_file(path, MOST_BYTES)
    data = read_figures(path)
    try:
        result = Result.from_dict(data)
    except MetricError as error:
        raise DataError(path, f"not a file of `scenegpi eval --json` ({error})") from None
    model, predictions, scored, split = (
        value if isinstance(value := data.get(key), str) else None for key in ("model", "predictions", "data", "split")
    )
    name = Path(model or predictions or path).stem if model is None else Path(model).name
    return Source(
        name, "evaluation", path, {result.protocol.data or path.stem: result}, model=model,
        predictions=None if predictions is None else Path(predictions),
        predicates=frozenset(result.per_predicate.get("relations", ())),
        data=None if scored is None else Path(scored), split=split,
    )  # fmt: skip


def _log(path: Path) -> list[dict[str, float]]:
    """Rows of a run's log, without values that are not finite numbers."""
    check_file(path, MOST_BYTES)
    rows: list[dict[str, float]] = []
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            for row in csv.DictReader(handle):
                rows.append({key: value for key, text in row.items() if key and isfinite(value := _float(text))})
                if len(rows) >= MOST_EPOCHS:
                    raise DataError(path, f"more than {MOST_EPOCHS:,} epochs")
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(path, f"not a log of a run ({type(error).__name__})") from None
    return rows


def _float(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return float("nan")


def _json(path: Path) -> dict[str, Any]:
    return read_figures(path) if path.is_file() else {}


def _predicates(folder: Path) -> frozenset[str]:
    names = _json(folder / "vocabulary.json").get("predicates")
    return frozenset(map(str, names)) if isinstance(names, list) else frozenset()


def _card_results(folder: Path) -> dict[str, Result]:
    """The figures of a model's card."""
    return {
        name: _card_result(name, entry)
        for name, entry in _json(folder / "metrics.json").items()
        if isinstance(entry, Mapping) and isinstance(entry.get("figures"), Mapping)
    }


def _card_result(name: str, entry: Mapping[str, Any]) -> Result:
    line = str(entry.get("protocol", ""))
    task: Any = next((key for key, text in TASK_NAMES.items() if line.startswith(text)), "predcls")
    figures = {key: float(value) for key, value in entry["figures"].items() if _is_figure(value)}
    given = entry.get("intervals")
    intervals = {
        key: (float(both[0]), float(both[1]))
        for key, both in (given.items() if isinstance(given, Mapping) else ())
        if isinstance(both, list) and len(both) == 2 and all(map(_is_figure, both))
    }
    images = entry.get("images")
    constraint: Any = "both" if any(key.startswith("ng") for key in figures) else "graph"
    counts = {"images": images if isinstance(images, int) else 0, "images_without_predictions": 0}
    return Result(Protocol(task, constraint, data=name), figures, intervals, {}, {}, counts, [])


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and isfinite(value)
