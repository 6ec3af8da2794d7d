"""From cells to figures: the results file, and the summaries behind tables and curves."""

import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch

import scenegpi
from scenegpi.errors import DataError
from scenegpi.files import read_json
from scenegpi.paper.labelling.experiment import FORMAT, Plan
from scenegpi.paper.labelling.graphs import best_order_blind_accuracy, stream_seed
from scenegpi.paper.labelling.models import COMPARED, build, count_parameters, describe

Result = dict[str, Any]

# What tables and figure need of a cell.
_DRAWN = {"model", "nodes", "samples", "accuracy", "cpu_seconds", "order_gap", "other_sizes", "checks"}


class Point(NamedTuple):
    """Mean, lowest and highest over seeds at ``x`` (samples, or nodes)."""

    x: int
    mean: float
    low: float
    high: float
    seeds: int


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
    return [Point(x, fmean(each), min(each), max(each), len(each)) for x, each in sorted(by_x.items())]


def summary_rows(
    cells: Sequence[Result], nodes: int, form: Callable[[Point | None], str], models: Sequence[str] = COMPARED
) -> list[list[str]]:
    """A row for each number of samples: the number, then each model's accuracy as ``form`` writes it."""
    curves = {model: {p.x: p for p in curve(cells, model, nodes)} for model in models}
    counts = sorted({x for points in curves.values() for x in points})
    return [[f"{x:,}", *(form(curves[model].get(x)) for model in models)] for x in counts]


def read_results(path: Path) -> dict[str, Any]:
    """A results file as :func:`results_file` made it; DataError for anything else."""
    results = read_json(path)
    cells = results.get("cells") if isinstance(results, dict) else None
    whole = isinstance(cells, list) and {"models", "strict_ceiling"} <= results.keys()
    if not (whole and cells and all(isinstance(cell, dict) and cell.keys() >= _DRAWN for cell in cells)):
        raise DataError(path, "is not a results file of this experiment")
    return dict(results)


def results_file(plan: Plan, cells: Sequence[Result]) -> dict[str, Any]:
    """Everything in one JSON value: choices, networks, the ceiling of the strict form, and every cell."""
    ceiling = best_order_blind_accuracy(plan.task.sample(plan.cells[0].test, stream_seed("test graphs", 0)))
    return {
        "format": FORMAT,
        "plan": plan.name,
        "task": asdict(plan.task),
        "recipes": {f"{cell.model}, n = {cell.task.nodes}": asdict(cell.recipe) for cell in plan.cells},
        "test graphs": {"n": plan.cells[0].test, "other n": plan.cells[0].size_test},
        "checks": ["step", "wall seconds", "CPU seconds", "validation accuracy", "validation loss"],
        "versions": {"scenegpi": scenegpi.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "machine": {"processor": platform.processor(), "threads": torch.get_num_threads()},
        "models": {
            model: {"parameters": count_parameters(build(model, plan.task)), "sizes": describe(model, plan.task)}
            for model in dict.fromkeys(cell.model for cell in plan.cells)
        },
        "strict_ceiling": ceiling,
        "cells": list(cells),
    }
