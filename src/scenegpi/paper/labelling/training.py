"""One training recipe for all networks: Adam, cosine learning rate, early stopping on held-out training samples.

Of the m samples a run is given, a fifth (at most 200) is the validation part; nothing else steers the training. The
weights of the best check (highest validation accuracy, then lowest loss) are kept.
"""

import copy
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from scenegpi.paper.labelling.graphs import Graphs

WARMUP, WEIGHT_DECAY, CLIP = 50, 1e-4, 1.0
"""Steps of warm-up, weight decay, maximum norm of a gradient."""
PATIENCE, LEAST_STEPS = 5, 1000
"""Training ends after this many checks without a new best, but not before this many steps: the strict form shows
no progress in its first few hundred."""
SOLVED_LOSS = 1e-3
"""Validation graphs with all labels right and a loss below this count as solved."""
_EVALUATION_BATCH = 50


@dataclass(frozen=True)
class Recipe:
    """``steps`` is the maximum; every ``check_every`` steps the validation part is scored."""

    steps: int = 2500
    batch: int = 8
    learning_rate: float = 1e-3
    check_every: int = 50

    def rate(self, step: int) -> float:
        """The factor on the learning rate: linear warm-up, then half a cosine down to 0 at ``steps``."""
        if step < WARMUP:
            return (step + 1) / WARMUP
        return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / max(1, self.steps - WARMUP)))


class Check(NamedTuple):
    """Validation after ``step`` steps; seconds of training so far, wall clock and CPU, without the checks."""

    step: int
    wall_seconds: float
    cpu_seconds: float
    accuracy: float
    loss: float


class Training(NamedTuple):
    """The whole course of a training; ``best`` is the check whose weights the model has now."""

    checks: tuple[Check, ...]
    best: Check
    reason: str


def accuracy(scores: Tensor, graphs: Graphs) -> float:
    """The fraction of nodes whose highest of ``scores (B, n, labels)`` is the right label."""
    return float((scores.argmax(2) == graphs.labels).double().mean())


def evaluate(model: nn.Module, graphs: Graphs) -> tuple[float, float]:
    """Accuracy and mean cross-entropy over all nodes; labels the model has no class for count as wrong."""
    model.eval()
    with torch.no_grad():
        starts = range(0, len(graphs), _EVALUATION_BATCH)
        scores = torch.cat([model(graphs[slice(k, k + _EVALUATION_BATCH)]) for k in starts])
    known = graphs.labels < scores.shape[2]
    loss = nn.functional.cross_entropy(scores[known], graphs.labels[known]) if known.any() else torch.tensor(math.nan)
    return accuracy(scores, graphs), float(loss)


def train(model: nn.Module, samples: Graphs, recipe: Recipe) -> Training:
    """Trains the model in place; random choices come from torch's global generator."""
    held_out = min(len(samples) // 5, 200)
    if held_out < 1:
        raise ValueError(f"needs at least 5 samples, a fifth is the validation part; got {len(samples)}")
    validation, training = samples[slice(held_out)], samples[slice(held_out, None)]
    optimiser = torch.optim.AdamW(model.parameters(), recipe.learning_rate, weight_decay=WEIGHT_DECAY, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, recipe.rate)
    batches = _batches(len(training), recipe.batch)
    checks: list[Check] = []
    best, weights, reason = -1, model.state_dict(), "steps used up"
    wall = cpu = 0.0
    while (step := checks[-1].step if checks else 0) < recipe.steps:
        count = min(recipe.check_every, recipe.steps - step)
        model.train()
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        for _ in range(count):
            _step(model, training[next(batches)], optimiser)
            schedule.step()
        wall, cpu = wall + time.perf_counter() - wall_start, cpu + time.process_time() - cpu_start
        right, loss = evaluate(model, validation)
        checks.append(Check(step + count, wall, cpu, right, loss))
        if best < 0 or (right, -loss) > (checks[best].accuracy, -checks[best].loss):
            best, weights = len(checks) - 1, copy.deepcopy(model.state_dict())
        if right == 1.0 and loss < SOLVED_LOSS:
            reason = "solved"
            break
        if len(checks) - 1 - best >= PATIENCE and checks[-1].step >= LEAST_STEPS:
            reason = "no better on validation"
            break
    model.load_state_dict(weights)
    return Training(tuple(checks), checks[best], reason)


def _step(model: nn.Module, graphs: Graphs, optimiser: torch.optim.Optimizer) -> None:
    loss = nn.functional.cross_entropy(model(graphs).flatten(0, 1), graphs.labels.flatten())
    if not torch.isfinite(loss):
        raise FloatingPointError(f"the training loss is {loss.item()}")
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimiser.step()


def _batches(count: int, size: int) -> Iterator[Tensor]:
    """Endless batches of ``size`` numbers below ``count``, every number once before any comes again."""
    queue = torch.empty(0, dtype=torch.long)
    while True:
        while len(queue) < size:
            queue = torch.cat([queue, torch.randperm(count)])
        yield queue[:size]
        queue = queue[size:]
