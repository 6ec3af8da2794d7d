"""Rows of an accuracy table: systems trained by a recipe with several presets and seeds, scored, averaged, compared.

    RUNS/seed0/baseline/              a run of `scenegpi train`
    RUNS/seed0/gpi-no-attention/      and so on: the others take over the label predictor and the baseline of their seed

What is finished is left as it is, what was interrupted is resumed: the same command goes on after a kill. A figure is
the mean over the seeds; its 95% interval is by bootstrap over images, of that mean, so that a gain is paired by image
and by seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, RecallState, Result, compare
from scenegpi.metrics.intervals import percentile_interval, poisson_weights
from scenegpi.models import BaselineConfig, ModelConfig, SceneModel, build_model, prepare_model
from scenegpi.models.presets import preset
from scenegpi.prediction import PredictOptions, Predictor
from scenegpi.training import TrainConfig, find_recipe, read_config, resume, train
from scenegpi.training.recipes import merged, with_epochs

BASELINE = "baseline"
GROUP = 256
"""Images that are scored at a time."""
REPLICATES = 1000
FIGURES = [f"{x}{kind}@{k}" for kind in ("R", "mR", "zR") for x in ("", "ng") for k in (20, 50, 100)]


class Row(NamedTuple):
    """A system: the mean over its seeds, the result of each seed, and of the mean of the seeds' distributions."""

    mean: Result
    seeds: list[Result]
    ensemble: Result | None = None


class LabelCounts(NamedTuple):
    """(n, 3) of each image: boxes, labels right, label among the first five."""

    rows: NDArray[np.float64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """(2,) top-1 and top-5."""
        total = self.rows.sum(0)
        return np.asarray(total[1:] / total[0])

    def join(self, other: LabelCounts) -> LabelCounts:
        """Both, over the images of both."""
        return LabelCounts(np.concatenate([self.rows, other.rows]))

    def replicates(self) -> NDArray[np.float64]:
        """(B, 2) of bootstrap over images; the same images get the same weights in every system."""
        weights = poisson_weights(np.arange(len(self.rows), dtype=np.uint64), REPLICATES).astype(np.float64)
        total = weights.T @ self.rows
        with np.errstate(invalid="ignore"):  # a replicate of few images may hold none
            return np.asarray(total[:, 1:] / total[:, :1])


def trained(config: TrainConfig, folder: Path) -> Path:
    """The model of a run, trained unless it is there."""
    if not (folder / "finished.json").is_file():
        print(f"{folder}: training", flush=True)
        if (folder / "config.json").is_file():
            resume(folder)
        else:
            train(config, folder)
    return folder / "model"


def preset_config(recipe: str, name: str, options: Mapping[str, Any], start: Path | None = None) -> TrainConfig:
    """A recipe with another preset and `options`; with context, on the label predictor and the baseline of `start`.

    A compared system has the epochs of the recipe's two stages together, unless the options say how many.
    """
    values: dict[str, Any] = {"preset": name, "half": False}
    model, given = preset(name), dict(options)
    if model.context is not None and start is not None:
        values["start"] = str(start)
    if model.context is None and "model" in options:  # it has no GPI layer to set
        given["model"] = {key: value for key, value in options["model"].items() if key != "network"}
    config = read_config(find_recipe(recipe), merged(given, values))
    if model.system is None or "epochs" in options:
        return config
    whole = read_config(find_recipe(recipe), dict(options))
    return with_epochs(config, whole.baseline.epochs + whole.context.epochs)


def train_presets(
    recipe: str, runs: Path, seeds: Sequence[int], options: Mapping[str, Any], presets: Sequence[str]
) -> dict[str, list[Path]]:
    """Trains what is missing: preset -> the model of each seed."""
    found: dict[str, list[Path]] = {}
    for seed in seeds:
        start = runs / f"seed{seed}" / BASELINE
        for name in presets:
            config = preset_config(recipe, name, merged(options, {"seed": seed}), start)
            found.setdefault(name, []).append(trained(config, runs / f"seed{seed}" / name))
    return found


def predictions(model: SceneModel, images: Iterable[SceneGraph], task: Any) -> Iterator[SceneGraph]:
    """What a model says of images, as metrics want it; for SGCls they carry label distributions."""
    for prediction in Predictor(model, options=PredictOptions.scoring(task)).stream(images):
        if prediction.graph is None:
            raise SystemExit(prediction.problem)
        yield prediction.graph


def freq_model(train: Sequence[SceneGraph]) -> SceneModel:
    """FREQ: the predicate from the two labels alone, by counts of the training images."""
    config = ModelConfig(BaselineConfig(layers=0, prior="freq", refine_labels=False))
    model = build_model(config, train[0].vocabulary).eval()
    prepare_model(model, train)
    return model


def score(found: Iterable[SceneGraph], truth: Iterable[SceneGraph], plan: Plan) -> Row:
    """A system without seeds."""
    result = RecallState(plan).stream(zip(found, truth, strict=True)).result()
    return Row(result, [result])


def score_seeds(models: Sequence[SceneModel], data: Sequence[SceneGraph], plan: Plan) -> Row:
    """One system from several seeds, by the plan's task, and the mean of their pair distributions as one more."""
    states = [RecallState(plan) for _ in range(len(models) + 1)]
    stream = zip(data, *(predictions(model, data, plan.protocol.task) for model in models), strict=True)
    while some := list(islice(stream, GROUP)):
        targets, *found = zip(*some, strict=True)
        for state, graphs in zip(states, found, strict=False):
            state.update(graphs, targets)
        if len(models) > 1:
            states[-1].update(map(together, zip(*found, strict=True)), targets)
    results = [state.result() for state in states]
    return Row(average(results[:-1]), results[:-1], results[-1] if len(models) > 1 else None)


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


def count_labels(found: Sequence[SceneGraph], truth: Sequence[SceneGraph]) -> LabelCounts:
    """By the distributions of `found`."""
    rows = []
    for graph, true in zip(found, truth, strict=True):
        order = np.argsort(-np.asarray(graph.label_dist), axis=1, kind="stable")[:, :5]
        hit = order == true.labels[:, None]
        rows.append((len(true), hit[:, 0].sum(), hit.any(1).sum()))
    return LabelCounts(np.array(rows, dtype=np.float64).reshape(-1, 3))


def plain_labels(counts: LabelCounts, base: LabelCounts | None) -> dict[str, Any]:
    """For JSON, in percent: top-1 and top-5, their intervals, and the paired gain over the baseline."""
    spread, names = counts.replicates(), ("top-1", "top-5")
    entry: dict[str, Any] = {
        "figures": {name: percent(value) for name, value in zip(names, counts.shares, strict=True)},
        "intervals": {name: [percent(e) for e in percentile_interval(spread[:, k])] for k, name in enumerate(names)},
    }
    if base is not None:
        more = spread - base.replicates()
        entry["gain"] = {
            name: [percent(counts.shares[k] - base.shares[k]), *map(percent, percentile_interval(more[:, k]))]
            for k, name in enumerate(names)
        }
    return entry


def plain_rows(rows: Mapping[str, Row], figures: Sequence[str], by_predicate: Sequence[str] = ()) -> dict[str, Any]:
    """For JSON, in percent: figures, intervals, each seed, and the paired gain over the baseline."""
    out: dict[str, Any] = {}
    for name, row in rows.items():
        mean = row.mean
        entry: dict[str, Any] = {
            "figures": {key: percent(mean.figures[key]) for key in figures},
            "intervals": {key: [percent(end) for end in mean.intervals[key]] for key in figures},
        }
        if len(row.seeds) > 1:
            entry["seeds"] = {key: [percent(each.figures[key]) for each in row.seeds] for key in figures}
        if name != BASELINE and BASELINE in rows:
            gains = compare(rows[BASELINE].mean, mean)
            entry["gain"] = {
                key: [percent(gains[key].difference), percent(gains[key].low), percent(gains[key].high)]
                for key in figures
            }
        if row.ensemble is not None:
            entry["ensemble"] = {key: percent(row.ensemble.figures[key]) for key in figures}
        if by_predicate:
            entry["per_predicate"] = {
                kind: {word: percent(value) for word, value in mean.per_predicate[kind].items()}
                for kind in by_predicate
            }
        out[name] = entry
    return out


def markdown(rows: Mapping[str, Any], figures: Sequence[str], gain: str, intervals: Sequence[str] = ()) -> str:
    """A table of `plain_rows` or `plain_labels`: figures (some with an interval), and the gain over the baseline."""
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


def percent(value: float) -> float | None:
    """For JSON."""
    return round(100 * float(value), 3) if math.isfinite(value) else None


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
