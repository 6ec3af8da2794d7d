"""From rendered pixels to scene graphs: SGCls and PredCls of the baseline and of the presets with context.

    python benchmarks/rendered.py --runs RUNS --quick            minutes, from nothing to the tables
    python benchmarks/rendered.py --runs RUNS [--images 1500] [--seeds 0] [--json FILE]

draws the scenes, trains the recipe `rendered` with each preset on top of the same label predictor and baseline, and
scores the test scenes. Presets are trained in `--jobs` processes side by side. What RUNS holds already is not made
again, what was interrupted goes on: each way of training has its own RUNS. 95% intervals by bootstrap over images;
gains are paired with the baseline of the same seed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from rows import (
    BASELINE,
    REPLICATES,
    LabelCounts,
    Row,
    average,
    count_labels,
    markdown,
    plain_rows,
    predictions,
    preset_config,
    trained,
    usable_presets,
)
from rows import score as score_prior
from scenegpi.data import Dataset, open_dataset
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState, Result
from scenegpi.models import load_model
from scenegpi.models.freq import FrequencyPrior
from scenegpi.options import plain
from scenegpi.rendered import render_folder
from scenegpi.training.config import merged
from scenegpi.vision.config import SMALL

RECIPE = "rendered"
IMAGES, QUICK_IMAGES = 1500, 1000
QUICK: dict[str, Any] = {
    "baseline": {"epochs": 10},
    "context": {"epochs": 12, "augment": {"given": 0.25}},
    "fit": {"epochs": 10, "folds": 3},
}
"""Minutes instead of a quarter of an hour: fewer scenes, fewer epochs, and more of them for what context is good at."""
TASKS = ("sgcls", "predcls")
SHOWN = ["R@20", "R@50", "R@100", "mR@50"]
Scored = tuple[dict[str, Result], LabelCounts]


def train_preset(runs: Path, options: dict[str, Any], name: str) -> Path:
    """The model of a preset, on what the baseline of its seed has learned."""
    torch.set_num_threads(1)
    return trained(preset_config(RECIPE, name, options, runs / BASELINE), runs / name)


def labelled_scenes(model: Path | str, data: Dataset) -> list[SceneGraph]:
    """The test scenes with the label distributions of the label predictor, which the presets of a seed share."""
    vision = load_model(model).vision
    assert vision is not None
    return [vision.add_labels(data.image_path(i), graph) for i, graph in enumerate(data)]


def score(model: Path, test: Sequence[SceneGraph], name: str) -> Scored:
    """The recalls of both tasks, and how many labels are right."""
    loaded = load_model(model)
    found = {task: list(predictions(loaded, test, task)) for task in TASKS}
    results = {task: RecallState(plan_of(task, test[0], name)).update(found[task], test).result() for task in TASKS}
    return results, count_labels(found["sgcls"], test)


def plan_of(task: Any, graph: SceneGraph, name: str) -> Plan:
    return Plan(Protocol(task, data=name), graph.vocabulary, bootstrap=REPLICATES)


def run_seed(runs: Path, options: dict[str, Any], data: Dataset, names: Sequence[str], jobs: int) -> dict[str, Scored]:
    """Everything from the scenes to the figures of one seed."""
    models = {BASELINE: train_preset(runs, options, BASELINE)}
    test = labelled_scenes(models[BASELINE], data)
    wanted = [name for name in names if name != BASELINE]
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the processes when they start
    # fork would copy torch's threads in an unknown state; a started process is clean
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        mapped = pool.map if jobs > 1 else map
        models |= dict(zip(wanted, mapped(partial(train_preset, runs, options), wanted), strict=True))
    return {name: score(models[name], test, data.path.name) for name in names}


def main() -> None:
    presets = usable_presets(None)  # there are no captions of rendered scenes to learn word vectors from
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, required=True, help="folder of the scenes and the trained models")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_IMAGES} scenes and fewer epochs: minutes")
    parser.add_argument("--images", type=int, help=f"scenes to draw; by default {IMAGES}")
    parser.add_argument("--epochs", type=int, nargs=2, metavar=("BASELINE", "CONTEXT"), help="the most of each")
    parser.add_argument("--scene-seed", type=int, default=0, help="of the scenes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the training")
    parser.add_argument("--presets", nargs="+", default=presets, choices=presets)
    parser.add_argument(
        "--small", action="store_true", help="the small backbone, trained here, in place of the packaged"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = [BASELINE, *(name for name in options.presets if name != BASELINE)]
    images = options.images or (QUICK_IMAGES if options.quick else IMAGES)
    values = dict(QUICK) if options.quick else {}
    if options.epochs:
        values = merged(
            values, {stage: {"epochs": n} for stage, n in zip((BASELINE, "context"), options.epochs, strict=True)}
        )
    if options.small:
        values = merged(values, {"model": {"vision": plain(SMALL)}, "fit": None})
    folder = options.runs / f"scenes-{images}-{options.scene_seed}"
    started = time.perf_counter()
    if not folder.is_dir():
        render_folder(folder, images, options.scene_seed, jobs=options.jobs)
        print(f"{images:,} scenes drawn in {time.perf_counter() - started:.0f} s", flush=True)
    data = open_dataset(folder, "test")
    seeds = []
    for seed in options.seeds:
        settings = merged(values, {"seed": seed, "data": {"path": str(folder)}})
        seeds.append(run_seed(options.runs / f"seed{seed}", settings, data, names, options.jobs))
    found: dict[str, Any] = {}
    prior = FrequencyPrior.fit(open_dataset(folder, "train"))
    for task in TASKS:
        plan = plan_of(task, data[0], folder.name)
        table = {prior.name: score_prior(prior.predict_all(data), data, plan)} if task == "predcls" else {}
        for name in names:
            results = [scored[name][0][task] for scored in seeds]
            table[name] = Row(average(results), results)
        found[task] = plain_rows(table, SHOWN)
        print(f"\n{task}, {len(data)} test scenes of {images} drawn with seed {options.scene_seed}, in percent\n")
        print(markdown(found[task], SHOWN, "R@50", SHOWN[:3]), flush=True)
    right = {name: sum(100 * float(scored[name][1].shares[0]) for scored in seeds) / len(seeds) for name in names}
    print("\nlabels right: " + ", ".join(f"{name} {share:.1f}%" for name, share in right.items()))
    print(f"\n{time.perf_counter() - started:.0f} s in all")
    if options.json:
        about = {"images": images, "scene seed": options.scene_seed, "seeds": options.seeds, "test": len(data)}
        about |= {"settings": values, "seconds": round(time.perf_counter() - started)}
        write_json(options.json, {**about, "labels right": right, **found})


if __name__ == "__main__":
    main()
