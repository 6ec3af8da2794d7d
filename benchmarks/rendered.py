"""From rendered pixels to scene graphs: SGCls and PredCls of the baseline and of the presets with context.

    python benchmarks/rendered.py --runs RUNS [--images 1500] [--seeds 0] [--json FILE] [--ship FOLDER]

draws the scenes (`scenegpi data render --images 1500 --seed 0`), trains a label head on crops of the boxes, then each
preset on top of the same held-out label distributions, and scores the test scenes. What RUNS holds already is
not made again, what was interrupted goes on. 95% intervals by bootstrap over images; gains are paired with the
baseline of the same seed.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scenegpi.data import Dataset, open_dataset
from scenegpi.data.files import read_object
from scenegpi.data.rendered import render_folder
from scenegpi.features.batch import Seen
from scenegpi.metrics import Plan, Protocol, RecallState, Result
from scenegpi.models import PRESETS, SceneModel, load_model
from scenegpi.models.checkpoint import save_model
from scenegpi.models.freq import FrequencyPrior
from scenegpi.models.predict import predict_seen
from scenegpi.options import plain
from scenegpi.training import train
from scenegpi.training.config import train_config
from scenegpi.training.folder import write_json
from scenegpi.training.photos import stage_figures
from scenegpi.training.run import read_run
from scenegpi.vision.cache import photo_looks
from scenegpi.vision.config import SMALL, HeadConfig, LookConfig, VisionConfig
from seed_rows import BASELINE, Row, average, markdown, plain_rows
from seed_rows import score as score_prior

OPTIM = {"batch": 16, "patience": 8, "first_epochs": 0, "warmup": 50, "average": 0.99, "pair_rate": 0.1}
EPOCHS = {True: 12, False: 20}
"""A thousand scenes are few: small batches, many epochs; of the baseline (its validation figure stays where it is
from the tenth on) and of the context on top of it."""
SHOWN = ["R@20", "R@50", "R@100", "mR@50"]
CROPS = LookConfig(
    nodes="crop",
    crop_size=96,
    margin=0.15,
    crop_layers=("middle", "head"),
    roi_layers=("middle", "head"),
    roi_bins=1,
    photo_size=320,
)
"""Each box is looked at by itself, so that a baseline without context really has none."""
EYES = {"efficientnet-lite0": VisionConfig(CROPS, HeadConfig(hidden=512, input_dropout=0.5)), "small": SMALL}
"""The packaged backbone on small crops, or a small one that is trained with the head."""
LEARNED = [name for name, config in PRESETS.items() if config.context is None or not config.context.words]
"""Presets that need no word vectors: there are no captions of rendered scenes to learn them from."""


def train_presets(data: Path, runs: Path, seed: int, names: Sequence[str], backbone: str) -> dict[str, Path]:
    """Trains what is missing, all on the vision stage of the baseline's run: preset -> model."""
    models: dict[str, Path] = {}
    for name in names:
        folder = runs / f"seed{seed}" / name
        values: dict[str, Any] = {"preset": name, "seed": seed, "stage": "both", "data": {"path": str(data)}}
        values["optim"] = {**OPTIM, "epochs": EPOCHS[name == BASELINE]}
        values["model"] = {"vision": plain(EYES[backbone]), "baseline": {"counts": False}}
        if name != BASELINE:
            values["model"]["context"] = {"read_again": True}
        values["data"]["cache"] = str(runs / f"seed{seed}" / "looks")
        if name != BASELINE:
            values |= {"stage": "graph", "start": str(models[BASELINE])}
        if not (folder / "finished.json").is_file():
            resume = (folder / "config.json").is_file()
            if name != BASELINE and not resume:
                shutil.copytree(models[BASELINE].parent / "vision", folder / "vision", dirs_exist_ok=True)
            started, worked = time.perf_counter(), time.process_time()
            train(read_run(folder) if resume else train_config(values), folder, resume=resume)
            spent = f"{time.perf_counter() - started:.0f} s, of them {time.process_time() - worked:.0f} s of one core"
            print(f"{folder}: trained in {spent}", flush=True)
        models[name] = folder / "model"
    return models


def seen_images(model: SceneModel, data: Dataset, cache: Path) -> list[Seen]:
    """What the model's eyes see of the photos; the presets of a seed share them."""
    assert model.vision is not None
    seen = []
    for i, graph in enumerate(data):
        looks = photo_looks(model.vision.extractor, data.image_path(i), graph, cache)
        seen.append(Seen(graph.replace(label_dist=model.vision.label_dist(looks, graph)), looks.pairs.numpy()))
    return seen


def score(model: SceneModel, seen: list[Seen], data: Dataset, plan: Plan) -> tuple[Result, float]:
    """The recalls and the share of boxes with the right label."""
    state, right = RecallState(plan), []
    for found, target in zip(predict_seen(model, seen, plan.protocol.task), data, strict=True):
        state.update([found], [target])
        right.append(found.labels == target.labels)
    return state.result(), float(np.concatenate(right).mean())


def ship(run: Path, out: Path, results: Mapping[str, Result], images: int) -> None:
    """Writes the model of a run in half precision, with its test figures; the card is written by hand."""
    about, figures = read_object(run / "model" / "config.json")["training"], read_object(run / "model" / "metrics.json")
    for task, result in results.items():
        tested = {"figures": {key: result.figures[key] for key in SHOWN}, "images": images}
        figures[f"test, {task}"] = {**tested, "intervals": {key: list(result.intervals[key]) for key in SHOWN}}
    save_model(load_model(run / "model"), out, figures, about, overwrite=out.exists(), half=True)
    print(f"{out}: {run.name}, {sum(path.stat().st_size for path in out.iterdir()):,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, required=True, help="folder of the scenes and the trained models")
    parser.add_argument("--images", type=int, default=1500)
    parser.add_argument("--scene-seed", type=int, default=0, help="of the scenes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the training")
    parser.add_argument("--presets", nargs="+", default=LEARNED, choices=LEARNED)
    parser.add_argument("--backbone", choices=list(EYES), default="efficientnet-lite0")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--ship", type=Path, help="write the model with the best validation R@50 (first seed) here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = [BASELINE, *(name for name in options.presets if name != BASELINE)]
    folder = options.runs / f"scenes-{options.images}-{options.scene_seed}"
    if not folder.is_dir():
        started = time.perf_counter()
        render_folder(folder, options.images, options.scene_seed, jobs=options.jobs)
        print(f"{folder}: drawn in {time.perf_counter() - started:.0f} s", flush=True)
    data = open_dataset(folder, "test")
    results: dict[str, dict[str, list[tuple[Result, float]]]] = {"sgcls": {}, "predcls": {}}
    for seed in options.seeds:
        models = {
            name: load_model(path)
            for name, path in train_presets(folder, options.runs, seed, names, options.backbone).items()
        }
        print(f"label predictor, held out: {stage_figures(options.runs / f'seed{seed}' / BASELINE)}", flush=True)
        seen = seen_images(models[BASELINE], data, options.runs / f"seed{seed}" / "looks")
        for task, rows in results.items():
            plan = Plan(Protocol(task, data=folder.name), data.vocabulary, bootstrap=1000)  # type: ignore[arg-type]
            for name, model in models.items():
                rows.setdefault(name, []).append(score(model, seen, data, plan))
    found: dict[str, Any] = {}
    prior = FrequencyPrior.fit(open_dataset(folder, "train"))
    labels_alone = Plan(Protocol("predcls", data=folder.name), data.vocabulary, bootstrap=1000)
    for task, rows in results.items():
        table = {prior.name: score_prior(prior.predict_all(data), data, labels_alone)} if task == "predcls" else {}
        table |= {n: Row(average([r for r, _ in each]), [r for r, _ in each]) for n, each in rows.items()}
        found[task] = plain_rows(table, SHOWN)
        print(
            f"\n{task}, {len(data)} test scenes of {options.images} drawn with seed {options.scene_seed}, in percent\n"
        )
        print(markdown(found[task], SHOWN, "R@50", SHOWN[:3]), flush=True)
    print(
        "\nlabels right: "
        + ", ".join(f"{n} {100 * np.mean([a for _, a in v]):.1f}%" for n, v in results["sgcls"].items())
    )
    if options.json:
        about = {"images": options.images, "scene seed": options.scene_seed, "seeds": options.seeds, "test": len(data)}
        write_json(options.json, {**about, **found})
    if options.ship:
        first = options.runs / f"seed{options.seeds[0]}"
        best = max(names, key=lambda name: float(read_object(first / name / "finished.json")["R@50"]))
        ship(first / best, options.ship, {task: rows[best][0][0] for task, rows in results.items()}, len(data))


if __name__ == "__main__":
    main()
