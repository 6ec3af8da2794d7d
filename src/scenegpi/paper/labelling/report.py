"""From cells to figures: the results file, and the summaries that tables and curves are made of."""

import json
import platform
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import scenegpi
from scenegpi.paper.labelling.cells import FORMAT, Cell
from scenegpi.paper.labelling.experiment import Plan
from scenegpi.paper.labelling.graphs import best_order_blind_accuracy, stream_seed
from scenegpi.paper.labelling.models import COMPARED, build, count_parameters, describe

Result = dict[str, Any]

# What tables and figure need of a cell.
_DRAWN = {"model", "nodes", "samples", "accuracy", "cpu_seconds", "order_gap", "other_sizes", "checks"}


@dataclass(frozen=True)
class Point:
    """Mean, lowest and highest over seeds at ``x`` (samples, or nodes)."""

    x: int
    mean: float
    low: float
    high: float
    seeds: int

    @classmethod
    def of(cls, x: int, values: Sequence[float]) -> "Point":
        return cls(x, statistics.fmean(values), min(values), max(values), len(values))


def curve(cells: Iterable[Result], model: str, nodes: int, value: str = "accuracy") -> list[Point]:
    """One value of a model's cells against the number of training samples."""
    return _points((c["samples"], c[value]) for c in cells if c["model"] == model and c["nodes"] == nodes)


def at_sizes(cells: Iterable[Result], model: str, samples: int, rule: str) -> list[Point]:
    """Accuracy on graphs of other sizes; rule is ``same_probability`` or ``same_degree``."""
    mine = (c for c in cells if c["model"] == model and c["samples"] == samples)
    return _points((size["nodes"], size[rule]) for c in mine for size in c["other_sizes"])


def _points(pairs: Iterable[tuple[int, float]]) -> list[Point]:
    by_x: dict[int, list[float]] = {}
    for x, value in pairs:
        by_x.setdefault(x, []).append(value)
    return [Point.of(x, values) for x, values in sorted(by_x.items())]


def summary_rows(
    cells: Sequence[Result], nodes: int, form: Callable[[Point | None], str], models: Sequence[str] = COMPARED
) -> list[list[str]]:
    """A row for each number of samples: the number, then each model's accuracy as ``form`` writes it."""
    curves = {model: {p.x: p for p in curve(cells, model, nodes)} for model in models}
    counts = sorted({x for points in curves.values() for x in points})
    return [[f"{x:,}", *(form(curves[model].get(x)) for model in models)] for x in counts]


def read_results(path: Path) -> dict[str, Any]:
    """A results file as :func:`results_file` made it; ValueError for anything else."""
    try:
        results = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    cells = results.get("cells") if isinstance(results, dict) else None
    whole = isinstance(cells, list) and {"models", "strict_ceiling"} <= results.keys()
    if not (whole and cells and all(isinstance(cell, dict) and cell.keys() >= _DRAWN for cell in cells)):
        raise ValueError(f"{path} is not a results file of this experiment")
    return dict(results)


def results_file(plan: Plan, cells: Sequence[Result]) -> dict[str, Any]:
    """Everything in one JSON value: choices, networks, the ceiling of the strict form, and every cell."""
    ceiling = best_order_blind_accuracy(plan.task.sample(plan.cells[0].test, stream_seed("test graphs", 0)))
    return {
        "format": FORMAT,
        "plan": plan.name,
        "choices": _choices(plan.cells),
        "versions": {"scenegpi": scenegpi.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "machine": {"processor": _processor(), "threads": torch.get_num_threads()},
        "models": {
            model: {"parameters": count_parameters(build(model, plan.task)), "sizes": describe(model, plan.task)}
            for model in dict.fromkeys(cell.model for cell in plan.cells)
        },
        "strict_ceiling": ceiling,
        "cells": list(cells),
    }


def _choices(cells: Sequence[Cell]) -> dict[str, Any]:
    first = cells[0]
    recipes = {f"{cell.model}, n = {cell.task.nodes}": asdict(cell.recipe) for cell in cells}
    return {
        "nodes n": sorted({cell.task.nodes for cell in cells}),
        "sets K": first.task.sets,
        "edge probability p": first.task.edge_probability,
        "labels": "number of neighbours in the same set, a class 0..n-1",
        "inputs": "z_i one-hot of the set; all ordered pairs, z_ij 1 for an edge else 0",
        "accuracy": f"fraction of nodes labelled right in {first.test} test graphs, the same for all cells",
        "accuracy at other sizes": f"{first.size_test} graphs of each size",
        "samples": sorted({cell.samples for cell in cells}),
        "seeds": sorted({cell.seed for cell in cells}),
        "a seed decides": "training samples, initial weights, order of batches; the test graphs are the same for all",
        "validation": "a fifth of the training samples, at most 200 graphs; chooses the step whose weights are kept",
        "early stopping": "validation solved, or after `least_steps` no better for `patience` checks; at most `steps`",
        "optimiser": "AdamW, linear warm-up then cosine to 0 at `steps`, gradient norm clipped",
        "how the recipe was settled": (
            "by trials on other graphs, except `least_steps`: added after a first run whose accuracy on these test "
            "graphs showed the strict form stopped too early (300 samples, 450 steps, 38%)"
        ),
        "loss": "cross-entropy, mean over nodes",
        "recipes": recipes,
        "seconds": "of training steps alone, without checks and tests",
        "checks": ["step", "wall seconds", "CPU seconds", "validation accuracy", "validation loss"],
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.machine()
