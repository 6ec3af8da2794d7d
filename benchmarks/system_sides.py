"""What stands beside the figures of a system: its size, its cost, and what a new listing of the boxes changes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rows import percent, predictions
from scenegpi.features.batch import SceneBatch, grouped
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, RecallState
from scenegpi.models import SceneModel
from scenegpi.training import TrainConfig
from scenegpi.training.losses import scene_loss

TOP = 20
TIMED = 128
DRAWS = 5


def relisting(model: SceneModel, images: Sequence[SceneGraph], task: Any = "predcls") -> dict[str, float]:
    """What changes when the boxes are listed in another order, drawn for each image."""
    orders = [np.random.default_rng((7, k)).permutation(len(graph)) for k, graph in enumerate(images)]
    others = [graph.permute(order) for graph, order in zip(images, orders, strict=True)]
    largest, changed = 0.0, 0
    runs = (predictions(model, some, task) for some in (images, others))
    for before, after, order in zip(*runs, orders, strict=True):
        moved = before.permute(order)
        first, second = np.asarray(moved.pair_dist), np.asarray(after.pair_dist)
        if not len(first):
            continue
        place = {tuple(pair): k for k, pair in enumerate(np.asarray(after.pairs).tolist())}
        second = second[[place[tuple(pair)] for pair in np.asarray(moved.pairs).tolist()]]
        largest = max(largest, float(np.abs(first - second).max()))
        changed += best_triplets(first) != best_triplets(second)
    return {"largest change": largest, "images changed": percent(changed / max(len(images), 1)) or 0.0}


def best_triplets(pairs: NDArray[np.floating]) -> set[tuple[int, int]]:
    """The 20 best (pair, predicate), one predicate per pair; pairs (E, 1 + P)."""
    best = pairs[:, 1:].argmax(1)
    order = np.argsort(-pairs[np.arange(len(pairs)), best + 1], kind="stable")[:TOP]
    return {(int(k), int(best[k])) for k in order}


def cost(model: SceneModel, config: TrainConfig, images: Sequence[SceneGraph]) -> dict[str, float]:
    """Number of weights, and CPU milliseconds per image on one thread."""
    batches = [SceneBatch.of(some) for some in grouped(images[:TIMED])]
    count = sum(batch.num_graphs for batch in batches)
    model.eval()
    started = time.process_time()
    with torch.inference_mode():
        for batch in batches:
            model(batch)
    forward = time.process_time() - started
    model.train()
    started = time.process_time()
    for batch in batches:
        out = model(batch)
        model.training_loss(batch, out, scene_loss(out, batch, config.stage.loss)).sum().backward()
    both = time.process_time() - started
    model.zero_grad()
    model.eval()
    milliseconds = {"forward": 1000 * forward / count, "forward and backward": 1000 * both / count}
    return {"weights": model.num_parameters(), **{key: round(value, 2) for key, value in milliseconds.items()}}


def random_orders(model: SceneModel, data: Sequence[SceneGraph], plan: Plan, figure: str) -> list[float]:
    """A figure of a system that reads boxes in a random order, for several orders, in percent."""
    found = []
    network: Any = model.network
    for draw in range(DRAWS):
        network.config = replace(network.config, draw=draw)
        said = predictions(model, data, plan.protocol.task)
        found.append(100 * RecallState(plan).stream(zip(said, data, strict=True)).result().figures[figure])
    network.config = replace(network.config, draw=0)
    return found


def facts(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The table beside the figures: size, cost, what a new listing changes."""
    lines = [
        "| | weights | forward, ms | and backward, ms | training, s | largest change | images changed, % |",
        "|---|" + "---:|" * 6,
    ]
    for name, row in rows.items():
        ms = row["forward"], row["forward and backward"]
        change = f"{row['largest change']:.1e} | {row['images changed']:.1f}"
        took = f"{ms[0]:.1f} | {ms[1]:.1f} | {row['training seconds']:.0f}"
        lines.append(f"| {name} | {row['weights']:,} | {took} | {change} |")
    return "\n".join(lines)
