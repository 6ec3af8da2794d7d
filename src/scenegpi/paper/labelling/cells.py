"""A cell of the experiment: one network, one number of training samples, one seed. Run it, and keep its result.

Every finished cell is a file of its own, written to a temporary name and then renamed: a run that is killed loses the
cell it was in, and the next run skips those that are there. The file's name holds a digest of all that decides its
content, so cells of other settings are never mixed in.
"""

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from scenegpi.paper.labelling.graphs import Graphs, Task, stream_seed
from scenegpi.paper.labelling.models import ModelName, build, count_parameters
from scenegpi.paper.labelling.training import Check, Recipe, evaluate, train

# Rises when a change of the code changes what a cell computes or holds.
FORMAT = 2

_INVARIANCE_GRAPHS = 20


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


def run_cell(cell: Cell, on_check: Callable[[Check], None] | None = None) -> dict[str, Any]:
    """Trains and tests; everything random follows from the cell, so that running it again gives the same accuracy."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed("training", cell.seed))
        model = build(cell.model, cell.task)
        samples = cell.task.sample(cell.samples, stream_seed("training samples", cell.seed))
        training = train(model, samples, cell.recipe, on_check)
        torch.manual_seed(stream_seed("test orders", cell.seed))
        test = _test_set(cell.task, cell.test)
        accuracy, loss = evaluate(model, test)
        gap, changed = order_dependence(model, test[slice(_INVARIANCE_GRAPHS)])
        other_sizes = []
        for nodes in cell.sizes:
            tasks = {"same_probability": replace(cell.task, nodes=nodes), "same_degree": same_degree(cell.task, nodes)}
            scores = {rule: evaluate(model, _test_set(task, cell.size_test))[0] for rule, task in tasks.items()}
            other_sizes.append({"nodes": nodes, **scores})
    last = training.checks[-1]
    return {
        "model": cell.model,
        "nodes": cell.task.nodes,
        "samples": cell.samples,
        "seed": cell.seed,
        "parameters": count_parameters(model),
        "accuracy": accuracy,
        "loss": loss,
        "steps": last.step,
        "best_step": training.best.step,
        "stopped": training.reason,
        "wall_seconds": round(last.wall_seconds, 2),
        "cpu_seconds": round(last.cpu_seconds, 2),
        "order_gap": gap,
        "order_changed_labels": changed,
        "other_sizes": other_sizes,
        "checks": [
            [c.step, round(c.wall_seconds, 2), round(c.cpu_seconds, 2), round(c.accuracy, 5), round(c.loss, 6)]
            for c in training.checks
        ],
    }


def order_dependence(model: nn.Module, graphs: Graphs, trials: int = 5, seed: int = 0) -> tuple[float, float]:
    """How much labels depend on the order in which nodes are listed, under ``trials`` random relabellings.

    The largest change of any label's probability, in double precision, so that it is not rounding; and the mean
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
    """The result of a finished cell; None if it is not there or can't be read."""
    try:
        result = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return result if isinstance(result, dict) and "accuracy" in result else None
