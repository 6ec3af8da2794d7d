"""Rows of an accuracy table: every preset trained with several seeds, scored together, averaged with intervals.

    RUNS/words.safetensors            word vectors learned from the captions, for gpi-linguistic
    RUNS/seed0/baseline/              a run of `scenegpi train`
    RUNS/seed0/gpi-no-attention/      and so on: the context presets take over the baseline of their seed

What is finished is left as it is, what was interrupted is resumed: the same command goes on after a kill. One process,
one thread. A figure is the mean over the seeds; its 95% interval is by bootstrap over images, of that mean, so that a
gain is paired by image and by seed.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scenegpi.data import Dataset
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, RecallState, Result, compare
from scenegpi.metrics.intervals import percentile_interval
from scenegpi.models import PRESETS, SceneModel, load_model, predict_dataset
from scenegpi.training import train
from scenegpi.training.config import train_config
from scenegpi.training.run import read_run

BASELINE = "baseline"
GROUP = 256
"""Images that are scored at a time."""


class Row(NamedTuple):
    """A system: the mean over its seeds, the result of each seed, and of the mean of the seeds' distributions."""

    mean: Result
    seeds: list[Result]
    ensemble: Result | None = None


def learn_words(captions: Path, runs: Path) -> Path:
    """Word vectors by `scenegpi words train`, once."""
    out = runs / "words.safetensors"
    if not out.exists():
        runs.mkdir(parents=True, exist_ok=True)
        code = "from scenegpi.cli import main; main()"
        subprocess.run([sys.executable, "-c", code, "words", "train", str(captions), "--out", str(out)], check=True)
    return out


def train_rows(
    runs: Path,
    seeds: Sequence[int],
    data: Mapping[str, Any],
    words: Path | None,
    baseline: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
) -> dict[str, list[Path]]:
    """Trains what is missing: preset -> the model of each seed.

    `data` as in a configuration file; so are `baseline` and `context`, settings for the runs without and with context.
    """
    found: dict[str, list[Path]] = {name: [] for name in PRESETS}
    for seed in seeds:
        for name in PRESETS:
            layer = PRESETS[name].context
            if layer is not None and layer.words and words is None:
                continue
            values: dict[str, Any] = {"preset": name, "seed": seed, "data": dict(data)}
            values |= (baseline if layer is None else context) or {}
            if layer is not None:
                values["start"] = str(found[BASELINE][-1])
                values["data"]["words"] = str(words) if layer.words else None
            folder = runs / f"seed{seed}" / name
            if not (folder / "finished.json").is_file():
                print(f"{folder}: training", flush=True)
                resume = (folder / "config.json").is_file()
                train(read_run(folder) if resume else train_config(values), folder, resume=resume)
            found[name].append(folder / "model")
    return {name: folders for name, folders in found.items() if folders}


def score(predictions: Iterable[SceneGraph], data: Iterable[SceneGraph], plan: Plan) -> Row:
    """A system without seeds."""
    result = RecallState(plan).stream(zip(predictions, data, strict=True)).result()
    return Row(result, [result])


def score_seeds(models: Sequence[SceneModel], data: Dataset, plan: Plan, task: Any = "predcls") -> Row:
    """One system from several seeds, and the mean of their distributions as one more."""
    states = [RecallState(plan) for _ in range(len(models) + 1)]
    stream = zip(data, *(predict_dataset(model, data, task) for model in models), strict=True)
    while some := list(islice(stream, GROUP)):
        targets, *found = zip(*some, strict=True)
        for state, graphs in zip(states, found, strict=False):
            state.update(graphs, targets)
        if len(models) > 1 and task == "predcls":
            states[-1].update(map(together, zip(*found, strict=True)), targets)
    results = [state.result() for state in states]
    ensemble = results[-1] if len(models) > 1 and task == "predcls" else None
    return Row(average(results[:-1]), results[:-1], ensemble)


def together(graphs: Sequence[SceneGraph]) -> SceneGraph:
    """The mean of the pair distributions that several models give to one image."""
    return graphs[0].replace(pair_dist=np.mean([graph.pair_dist for graph in graphs], axis=0))


def average(results: Sequence[Result]) -> Result:
    """The mean of every figure over the seeds, with the intervals of that mean."""
    first = results[0]
    spread = {name: np.mean([each.replicates[name] for each in results], axis=0) for name in first.replicates}
    by_predicate = {
        kind: {name: _mean(each.per_predicate[kind][name] for each in results) for name in values}
        for kind, values in first.per_predicate.items()
    }
    return replace(
        first,
        figures={name: _mean(each.figures[name] for each in results) for name in first.figures},
        intervals={name: percentile_interval(values) for name, values in spread.items()},
        per_predicate=by_predicate,
        replicates=spread,
    )


def load_rows(folders: Mapping[str, Sequence[Path]]) -> Iterator[tuple[str, list[SceneModel]]]:
    """The models of each row, one row at a time."""
    for name, paths in folders.items():
        yield name, [load_model(path) for path in paths]


def plain_rows(rows: Mapping[str, Row], figures: Sequence[str], by_predicate: Sequence[str] = ()) -> dict[str, Any]:
    """For JSON, in percent: figures, intervals, each seed, and the paired gain over the baseline."""
    out: dict[str, Any] = {}
    for name, row in rows.items():
        mean = row.mean
        entry: dict[str, Any] = {
            "figures": {key: _percent(mean.figures[key]) for key in figures},
            "intervals": {key: [_percent(end) for end in mean.intervals[key]] for key in figures},
        }
        if len(row.seeds) > 1:
            entry["seeds"] = {key: [_percent(each.figures[key]) for each in row.seeds] for key in figures}
        if name != BASELINE and BASELINE in rows:
            gains = compare(rows[BASELINE].mean, mean)
            entry["gain"] = {
                key: [_percent(gains[key].difference), _percent(gains[key].low), _percent(gains[key].high)]
                for key in figures
            }
        if row.ensemble is not None:
            entry["ensemble"] = {key: _percent(row.ensemble.figures[key]) for key in figures}
        if by_predicate:
            entry["per_predicate"] = {
                kind: {word: _percent(value) for word, value in mean.per_predicate[kind].items()}
                for kind in by_predicate
            }
        out[name] = entry
    return out


def markdown(rows: Mapping[str, Any], figures: Sequence[str], gain: str, intervals: Sequence[str] = ()) -> str:
    """A table of `plain_rows`: the figures (with an interval where asked), and the gain over the baseline."""
    lines = ["| | " + " | ".join([*figures, f"gain in {gain}"]) + " |", "|---|" + "---:|" * (len(figures) + 1)]
    for name, entry in rows.items():
        cells = []
        for key in figures:
            low, high = entry["intervals"][key]
            cells.append(f"{entry['figures'][key]:.1f}" + (f" [{low:.1f}, {high:.1f}]" if key in intervals else ""))
        difference = entry.get("gain", {}).get(gain)
        shown = "" if difference is None else "{:+.2f} [{:+.2f}, {:+.2f}]".format(*difference)
        lines.append("| " + " | ".join([name, *cells, shown]) + " |")
    return "\n".join(lines)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _percent(value: float) -> float | None:
    return round(100 * value, 3) if math.isfinite(value) else None
