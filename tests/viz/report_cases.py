"""A small report with everything in it: photos, attention, a log, and names that try to break out of the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from models.model_cases import random_graph, small
from scenegpi import SceneGraph, Vocabulary, load_model
from scenegpi.metrics.protocol import Protocol
from scenegpi.models.build import SceneModel, build_model, prepare_model
from scenegpi.models.presets import PRESETS
from scenegpi.viz.report.exhibit import Exhibit, choose
from scenegpi.viz.report.page import write_report
from scenegpi.viz.report.source import Source

ATTACK = '</script><img src=x onerror="window.broken=1"><script>window.broken=2</script>'
HOSTILE = Vocabulary(
    ["man", ATTACK, "'\"><b>bold</b>", "犬", "a\x00b\x1b[2J\u2028c", "{{7*7}} ${8*8} `x` %s"],
    ["on", f"near {ATTACK}", '" onmouseover="window.broken=3', "&lt;under&gt;"],
)


def hostile_model(preset: str = "gpi-neighbour-attention") -> SceneModel:
    torch.manual_seed(0)
    model = build_model(small(PRESETS[preset]), HOSTILE)
    prepare_model(model, hostile_graphs(4, seed=9))
    return model.eval()


def hostile_graphs(count: int, seed: int = 0) -> list[SceneGraph]:
    rng = np.random.default_rng(seed)
    graphs = [random_graph(rng, int(rng.integers(3, 8)), dist=False, vocabulary=HOSTILE) for _ in range(count)]
    return [
        graph.replace(image_id=k, file=f"{ATTACK}{k}.jpg" if k == 0 else f"{k}.jpg") for k, graph in enumerate(graphs)
    ]


def make_report(folder: Path, images: int = 6, shown: int = 6) -> Path:
    """Every second image has a photo."""
    model, graphs = hostile_model(), hostile_graphs(images)
    rng = np.random.default_rng(1)
    photos = {}
    for k in range(0, images, 2):
        Image.fromarray(rng.integers(0, 255, (160, 200, 3), dtype=np.uint8)).save(folder / f"{k}.png")
        photos[k] = folder / f"{k}.png"
    exhibit = Exhibit.of_model(model, graphs, lambda graph: photos.get(graph.image_id), "predcls")
    result, recall = exhibit.score(Protocol(data=f"imaginary {ATTACK}"), bootstrap=50)
    log = [
        {"epoch": k + 1.0, "loss": 3.0 / (k + 1), "R@20": 30.0 + k, "R@50": 40 + k % 3, "R@100": 40.5, "mR@50": 9.0}
        for k in range(5)
    ]
    known = frozenset(load_model("vg150-layout").vocabulary.predicates)  # so that the published table is shown too
    source = Source(f"run {ATTACK}", "training run", folder, log=log, config={"preset": ATTACK}, predicates=known)
    notes = [f"a note {ATTACK}"]
    many = {p: float(k + 1) for k, p in enumerate([*HOSTILE.predicates, *(f"extra {k}" for k in range(20))])}
    result = replace(result, per_predicate={"relations": many, "R@50": dict.fromkeys(many, 0.5), "pair-R@5": {}})
    return write_report(folder / "report.html", source, result, exhibit.show(choose(recall, shown), recall), notes)
