"""The cells of the experiment, and the loop over them. A cell is one network, number of training samples and seed.

Every finished cell is a separate file, written to a temporary name and then renamed: a killed run loses only its
current cell, and the next run skips finished ones. The file's name contains a digest of all settings that affect it, so
cells of other settings are never mixed in.

Seeds are the outermost loop: an interrupted run has complete curves for its first seeds. The most expensive cells come
last.
"""

import copy
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from scenegpi.files import write_json
from scenegpi.paper.labelling.graphs import Graphs, Task, stream_seed
from scenegpi.paper.labelling.models import COMPARED, ModelName, build, count_parameters
from scenegpi.paper.labelling.training import Recipe, evaluate, train

# Rises when a change of the code changes what a cell computes or holds.
FORMAT = 2

_INVARIANCE_GRAPHS = 20
_DIGITS = (0, 2, 2, 5, 6)  # of a check: step, seconds, CPU seconds, accuracy, loss
# The fully-connected network is some twenty times cheaper per graph: it gets more steps and bigger batches.
_RECIPE = Recipe()
_FC_RECIPE = Recipe(steps=4000, batch=64, check_every=100)
# At n = 30 an LSTM step takes ten times as long as at n = 10.
_LARGE_LSTM_RECIPE = Recipe(steps=500)
# Sizes not trained on, and the training sets after which they are tried.
_SIZES = (5, 8, 10, 12, 15, 20, 30, 40)
_GROWN_FROM = (1000, 10_000)


@dataclass(frozen=True)
class Cell:
    """Tested on ``test`` graphs, and on ``size_test`` graphs of each of the numbers of nodes in ``sizes``."""

    model: ModelName
    samples: int
    seed: int
    task: Task
    recipe: Recipe
    test: int = 1000
    sizes: tuple[int, ...] = ()
    size_test: int = 200

    @property
    def key(self) -> str:
        digest = hashlib.sha256(json.dumps([FORMAT, asdict(self)], sort_keys=True).encode()).hexdigest()
        return f"{self.model}-n{self.task.nodes}-m{self.samples}-s{self.seed}-{digest[:8]}"


def same_degree(task: Task, nodes: int) -> Task:
    """The task with other ``nodes`` and the same mean number of neighbours, p (n - 1), as far as p <= 1 allows."""
    degree = task.edge_probability * (task.nodes - 1)
    return replace(task, nodes=nodes, edge_probability=min(1.0, degree / max(1, nodes - 1)))


def run_cell(cell: Cell) -> dict[str, Any]:
    """Trains and tests; everything random follows from the cell, so that running it again gives the same accuracy."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed("training", cell.seed))
        model = build(cell.model, cell.task)
        samples = cell.task.sample(cell.samples, stream_seed("training samples", cell.seed))
        training = train(model, samples, cell.recipe)
        torch.manual_seed(stream_seed("test orders", cell.seed))
        test = _test_set(cell.task, cell.test)
        accuracy, loss = evaluate(model, test)
        gap, changed = order_dependence(model, test[slice(_INVARIANCE_GRAPHS)])
        other_sizes = []
        for nodes in cell.sizes:
            tasks = {"same_probability": replace(cell.task, nodes=nodes), "same_degree": same_degree(cell.task, nodes)}
            scores = {rule: evaluate(model, _test_set(task, cell.size_test))[0] for rule, task in tasks.items()}
            other_sizes.append({"nodes": nodes, **scores})
    about = {"model": cell.model, "nodes": cell.task.nodes, "samples": cell.samples, "seed": cell.seed}
    found = {"parameters": count_parameters(model), "accuracy": accuracy, "loss": loss}
    checks = [[round(value, digits) for value, digits in zip(c, _DIGITS, strict=True)] for c in training.checks]
    steps, wall, cpu, *_ = checks[-1]
    course = {"steps": steps, "best_step": training.best.step, "stopped": training.reason}
    order = {"order_gap": gap, "order_changed_labels": changed, "other_sizes": other_sizes, "checks": checks}
    return about | found | course | {"wall_seconds": wall, "cpu_seconds": cpu} | order


def order_dependence(model: nn.Module, graphs: Graphs, trials: int = 5, seed: int = 0) -> tuple[float, float]:
    """How much labels depend on the order of the nodes, under ``trials`` random relabellings.

    The largest change of any label's probability, in double precision, to exclude rounding; and the mean
    fraction of labels that change. A network that draws random orders itself draws the same ones each time.
    """
    double = copy.deepcopy(model).double().eval()
    generator = torch.Generator().manual_seed(seed)

    def probabilities(graphs: Graphs) -> Tensor:
        torch.manual_seed(seed)
        found: Tensor = double(graphs).softmax(2)
        return found

    gap = changed = 0.0
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        listed = probabilities(graphs)
        for _ in range(trials):
            order = torch.randperm(graphs.nodes, generator=generator)
            expected, found = listed[:, order], probabilities(graphs.relabel(order))
            gap = max(gap, float((found - expected).abs().max()))
            changed += float((found.argmax(2) != expected.argmax(2)).double().mean()) / trials
    return gap, changed


def _test_set(task: Task, count: int) -> Graphs:
    return task.sample(count, stream_seed("test graphs", 0))


def finished_cell(file: Path) -> dict[str, Any] | None:
    """The result of a finished cell; None if it is missing or can't be read."""
    try:
        result = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return result if isinstance(result, dict) and "accuracy" in result else None


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
    # This rate was tuned on GPI; the strict form does not learn with it in so few steps.
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


def run(cells: Sequence[Cell], folder: Path) -> Iterator[tuple[dict[str, Any], bool]]:
    """The result of each cell, and whether it ran now: those in the folder are read, the others run and written."""
    for cell in cells:
        file = folder / f"{cell.key}.json"
        found = finished_cell(file)
        result = run_cell(cell) if found is None else found
        if found is None:
            write_json(file, result)
        yield result, found is None
