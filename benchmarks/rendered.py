"""From rendered pixels to scene graphs: SGCls and PredCls of the baseline and of the presets with context.

    python benchmarks/rendered.py --runs RUNS --quick            minutes, from nothing to the tables
    python benchmarks/rendered.py --runs RUNS [--images 1500] [--epochs 12 20] [--seeds 0] [--json FILE] [--ship FOLDER]

draws the scenes (`scenegpi data render --images 1500 --seed 0`), trains a label head on crops of the boxes, then the
baseline, then each preset on top of the same held-out label distributions, and scores the test scenes. Scenes are drawn
and looked at, and presets trained, in `--jobs` processes side by side; the seconds of every part are printed. What RUNS
holds already is not made again, what was interrupted goes on: each way of training has its own RUNS. 95% intervals by
bootstrap over images; gains are paired with the baseline of the same seed.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from scenegpi.data import Dataset, open_dataset
from scenegpi.features.batch import Seen
from scenegpi.files import read_object
from scenegpi.metrics import Plan, Protocol, RecallState, Result
from scenegpi.models import PRESETS, SceneModel, load_model
from scenegpi.models.checkpoint import save_model
from scenegpi.models.freq import FrequencyPrior
from scenegpi.models.predict import predict_seen
from scenegpi.options import plain
from scenegpi.rendered import render_folder
from scenegpi.training import train
from scenegpi.training.config import train_config
from scenegpi.training.folder import write_json
from scenegpi.training.photos import stage_figures
from scenegpi.training.run import read_run
from scenegpi.vision.backbone import load_backbone
from scenegpi.vision.cache import photo_looks
from scenegpi.vision.config import SMALL, FitOptions, HeadConfig, LookConfig, VisionConfig
from scenegpi.vision.looks import LookExtractor
from seed_rows import BASELINE, Row, average, markdown, plain_rows
from seed_rows import score as score_prior
from side_by_side import Parts, shares

OPTIM = {"batch": 16, "patience": 8, "first_epochs": 0, "warmup": 50, "average": 0.99, "pair_rate": 0.1}


@dataclass(frozen=True)
class Recipe:
    """How many scenes, and how long they are learned from.

    A thousand scenes to train on are few: small batches, many epochs; of the baseline (its validation figure stays
    where it is from the tenth on) and of the context on top of it. `given` is the share of the context's batches with
    given labels, `fit` how the label predictor is trained, if not as usual.
    """

    images: int = 1500
    epochs: tuple[int, int] = (12, 20)
    given: float = 0.5
    fit: FitOptions | None = None


QUICK = Recipe(1000, (10, 12), 0.25, FitOptions(epochs=10, folds=3))
"""Minutes instead of a quarter of an hour: fewer scenes, fewer epochs, and more of them for what context is good at."""
TASKS = ("sgcls", "predcls")
Scored = tuple[Result, float]
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


class Job(NamedTuple):
    """All that a process needs to train one preset: the scenes, a folder of runs, and how."""

    data: Path
    runs: Path
    seed: int
    backbone: str
    recipe: Recipe

    def run(self, name: str) -> Path:
        return self.runs / f"seed{self.seed}" / name

    @property
    def looks(self) -> Path:
        return self.run("looks")


def look_at_photos(job: Job, photos: Sequence[tuple[str, int]]) -> None:
    """Puts the looks of photos, (split, number), where the training will find them."""
    extractor = LookExtractor(EYES[job.backbone].looks, load_backbone(EYES[job.backbone].looks.backbone))
    data = {split: open_dataset(job.data, split) for split in {split for split, _ in photos}}
    for split, i in photos:
        photo_looks(extractor, data[split].image_path(i), data[split][i], job.looks)


def train_stage(job: Job, name: str, stage: str) -> None:
    """The "vision" stage of the baseline's run, or the "graph" stage of any, unless it is done."""
    folder, start = job.run(name), job.run(BASELINE)
    if (folder / "finished.json").is_file() or (stage == "vision" and stage_figures(folder) is not None):
        return
    values: dict[str, Any] = {"preset": name, "seed": job.seed, "stage": stage}
    values["data"] = {"path": str(job.data), "cache": str(job.looks)}
    values["optim"] = {**OPTIM, "epochs": job.recipe.epochs[name != BASELINE]}
    if job.recipe.fit is not None and job.backbone != "small":
        values["fit"] = plain(job.recipe.fit)
    values["model"] = {"vision": plain(EYES[job.backbone]), "baseline": {"counts": False}}
    resume = (folder / "config.json").is_file()
    if name != BASELINE:
        values["model"]["context"] = {"read_again": True}
        values["augment"] = {"given": job.recipe.given}
        values["start"] = str(start / "model")
        if not resume:
            shutil.copytree(start / "vision", folder / "vision", dirs_exist_ok=True)
    train(read_run(folder) if resume else train_config(values), folder, resume=resume)


def seen_images(model: SceneModel, data: Dataset, cache: Path) -> list[Seen]:
    """What the model's eyes see of the photos; the presets of a seed share them."""
    assert model.vision is not None
    seen = []
    for i, graph in enumerate(data):
        looks = photo_looks(model.vision.extractor, data.image_path(i), graph, cache)
        seen.append(Seen(graph.replace(label_dist=model.vision.label_dist(looks, graph)), looks.pairs.numpy()))
    return seen


def score(model: SceneModel, seen: list[Seen], data: Dataset, plan: Plan) -> Scored:
    """The recalls and the share of boxes with the right label."""
    state, right = RecallState(plan), []
    for found, target in zip(predict_seen(model, seen, plan.protocol.task), data, strict=True):
        state.update([found], [target])
        right.append(found.labels == target.labels)
    return state.result(), float(np.concatenate(right).mean())


def train_and_score(job: Job, name: str) -> dict[str, Scored]:
    """A preset on top of the baseline that is there (or that baseline): its figures for each task."""
    train_stage(job, name, "graph")
    model, data = load_model(job.run(name) / "model"), open_dataset(job.data, "test")
    seen = seen_images(model, data, job.looks)
    return {task: score(model, seen, data, plan_of(task, data, job.data.name)) for task in TASKS}


def plan_of(task: Any, data: Dataset, name: str) -> Plan:
    return Plan(Protocol(task, data=name), data.vocabulary, bootstrap=1000)


def run_seed(job: Job, names: Sequence[str], parts: Parts) -> dict[str, dict[str, Scored]]:
    """Everything from the scenes to the figures, preset -> task -> figures."""
    suffix = f", seed {job.seed}" if job.seed else ""
    if EYES[job.backbone].looks.backbone != "small" and stage_figures(job.run(BASELINE)) is None:
        with parts.part(f"look at the photos{suffix}"):
            photos = [(s, i) for s in ("train", "val", "test") for i in range(len(open_dataset(job.data, s)))]
            pieces = {str(k): (job, each) for k, each in enumerate(shares(photos, parts.jobs))}
            parts.map(look_at_photos, pieces, say=False)
    with parts.part(f"label predictor{suffix}"):
        train_stage(job, BASELINE, "vision")
    print(f"label predictor, held out: {stage_figures(job.run(BASELINE))}", flush=True)
    with parts.part(f"baseline{suffix}"):
        train_stage(job, BASELINE, "graph")
    with parts.part(f"presets, and scoring{suffix}"):
        # what is only scored comes last: it fills the time of the process that is done first
        wanted = [name for name in names if name != BASELINE] + [BASELINE]
        scored = parts.map(train_and_score, {f"- {name}{suffix}": (job, name) for name in wanted})
        found = dict(zip(wanted, scored.values(), strict=True))
    return {name: found[name] for name in names}


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
    parser.add_argument(
        "--runs",
        type=Path,
        required=True,
        help="folder of the scenes and the trained models, one for each way to train them",
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK.images} scenes, epochs {QUICK.epochs}: minutes")
    parser.add_argument("--images", type=int, help=f"scenes to draw; by default {Recipe().images}")
    parser.add_argument("--epochs", type=int, nargs=2, metavar=("BASELINE", "CONTEXT"), help="the most of each")
    parser.add_argument("--scene-seed", type=int, default=0, help="of the scenes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the training")
    parser.add_argument("--presets", nargs="+", default=LEARNED, choices=LEARNED)
    parser.add_argument("--backbone", choices=list(EYES), default="efficientnet-lite0")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--ship", type=Path, help="write the model with the best validation R@50 (first seed) here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = [BASELINE, *(name for name in options.presets if name != BASELINE)]
    recipe = QUICK if options.quick else Recipe()
    images = options.images or recipe.images
    recipe = replace(recipe, images=images, epochs=tuple(options.epochs or recipe.epochs))
    folder = options.runs / f"scenes-{images}-{options.scene_seed}"
    rows: dict[str, dict[str, list[Scored]]] = {task: {name: [] for name in names} for task in TASKS}
    with Parts(options.jobs) as parts:
        if not folder.is_dir():
            with parts.part(f"draw {images:,} scenes"):
                render_folder(folder, images, options.scene_seed, jobs=options.jobs)
        for seed in options.seeds:
            job = Job(folder, options.runs, seed, options.backbone, recipe)
            for name, scored in run_seed(job, names, parts).items():
                for task in TASKS:
                    rows[task][name].append(scored[task])
    data = open_dataset(folder, "test")
    found: dict[str, Any] = {}
    prior = FrequencyPrior.fit(open_dataset(folder, "train"))
    for task, each in rows.items():
        plan = plan_of("predcls", data, folder.name)
        table = {prior.name: score_prior(prior.predict_all(data), data, plan)} if task == "predcls" else {}
        table |= {name: Row(average([r for r, _ in some]), [r for r, _ in some]) for name, some in each.items()}
        found[task] = plain_rows(table, SHOWN)
        print(f"\n{task}, {len(data)} test scenes of {images} drawn with seed {options.scene_seed}, in percent\n")
        print(markdown(found[task], SHOWN, "R@50", SHOWN[:3]), flush=True)
    right = {name: 100 * float(np.mean([a for _, a in some])) for name, some in rows["sgcls"].items()}
    print("\nlabels right: " + ", ".join(f"{name} {share:.1f}%" for name, share in right.items()))
    print(f"\n{parts.table()}")
    if options.json:
        about = {"images": images, "scene seed": options.scene_seed, "seeds": options.seeds, "test": len(data)}
        about |= {"backbone": options.backbone, "recipe": plain(recipe), "seconds, and of one core": parts.spent}
        write_json(options.json, {**about, "labels right": right, **found})
    if options.ship:
        first = options.runs / f"seed{options.seeds[0]}"
        best = max(names, key=lambda name: float(read_object(first / name / "finished.json")["R@50"]))
        ship(first / best, options.ship, {task: each[best][0][0] for task, each in rows.items()}, len(data))


if __name__ == "__main__":
    main()
