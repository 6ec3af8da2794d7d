"""Which cells the experiment has, and the loop over them.

Seeds are the outermost loop: an interrupted run has whole curves from its first seeds. The dearest cells come last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scenegpi.files import write_json
from scenegpi.paper.labelling.cells import Cell, finished_cell, run_cell
from scenegpi.paper.labelling.graphs import Task
from scenegpi.paper.labelling.models import COMPARED, ModelName
from scenegpi.paper.labelling.training import Check, Recipe

# The fully-connected network is some twenty times cheaper a graph: it gets more steps and bigger batches.
_RECIPE = Recipe()
_FC_RECIPE = Recipe(steps=4000, batch=64, check_every=100)
# At n = 30 an LSTM step takes ten times as long as at n = 10.
_LARGE_LSTM_RECIPE = Recipe(steps=500)
# Sizes not trained on, and the training sets after which they are tried.
_SIZES = (5, 8, 10, 12, 15, 20, 30, 40)
_GROWN_FROM = (1000, 10_000)


@dataclass(frozen=True)
class Plan:
    """The cells in the order of running them, and what they are drawn from."""

    name: str
    task: Task
    cells: tuple[Cell, ...]


def full_plan(seeds: int = 3) -> Plan:
    """All networks on 50 to 10,000 samples, the fully-connected one on more; n = 30; sizes not trained on."""
    task, large = Task(), Task(nodes=30)
    cells: list[Cell] = []
    for seed in range(seeds):
        for samples in (50, 100, 300, 1000, 3000, 10_000):
            cells += [_cell(model, samples, seed, task) for model in COMPARED]
        cells += [_cell("gpi-edges", samples, seed, task) for samples in _GROWN_FROM]
        cells += [_cell("gpi", 1000, seed, large), _cell("fc", 1000, seed, large)]
    cells += [_cell("fc", samples, seed, task) for samples in (30_000, 100_000) for seed in range(seeds)]
    cells += [_cell("gpi-strict", 1000, 0, large), _cell("lstm", 1000, 0, large)]
    return Plan("full", task, tuple(cells))


def quick_plan(seeds: int = 1) -> Plan:
    """Two points of each curve and a short training: the effect in a minute, not the best of the slow learners."""
    task = Task()
    # This rate was tried out on GPI and suits it; the strict form does not learn with it in so few steps.
    recipe = Recipe(steps=400, learning_rate=2e-3, check_every=100)
    runs: list[tuple[ModelName, int]] = [(model, samples) for samples in (100, 1000) for model in COMPARED]
    cells = [
        Cell(model, samples, seed, task, recipe, test=200, sizes=(5, 10, 15, 20) if _grows(model, samples) else ())
        for seed in range(seeds)
        for model, samples in [*runs, ("gpi-edges", 1000)]
    ]
    return Plan("quick", task, tuple(cells))


def _grows(model: ModelName, samples: int) -> bool:
    # Which trained networks are tried on sizes that they were not trained on; the fully-connected one can't be.
    return model != "fc" and samples in _GROWN_FROM


def _cell(model: ModelName, samples: int, seed: int, task: Task) -> Cell:
    recipe = _FC_RECIPE if model == "fc" else _RECIPE
    if model == "lstm" and task.nodes > 10:
        recipe = _LARGE_LSTM_RECIPE
    grows = task == Task() and _grows(model, samples)
    return Cell(model, samples, seed, task, recipe, sizes=_SIZES if grows else ())


def run(
    cells: Sequence[Cell],
    folder: Path,
    on_start: Callable[[Cell], None] | None = None,
    on_check: Callable[[Cell, Check], None] | None = None,
    on_done: Callable[[Cell, dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Results of all cells, in their order; those already in the folder are read, the others run and written there."""
    results = []
    for cell in cells:
        file = folder / f"{cell.key}.json"
        result = finished_cell(file)
        if result is None:
            if on_start:
                on_start(cell)
            result = run_cell(cell, partial(on_check, cell) if on_check else None)
            write_json(file, result)
        if on_done:
            on_done(cell, result)
        results.append(result)
    return results
