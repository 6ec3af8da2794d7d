"""Do the probabilities of a model mean what they say? As they come, and after temperatures were fitted.

    python benchmarks/calibration.py [--vg150 VG150 [--all-boxes VG150_ALLBOXES]] [--vrd VRD] [--folds RUNS] \
        [--scenes FOLDER] [--model NAME=FOLDER ...] [--json FILE]

Shipped models (and those of --model, on VG150), each on test images, with a calibration fitted to others that it was
not trained on: the validation images of its training, or scenes of another seed, drawn into --scenes. `vrd-photo` was
trained on all photos: in its place stand the models of the cross-validation (--folds, the RUNS of `vrd_photos.py
--boxes both`), each on the photos of its fold, fitted to what the others say of theirs; all five together give the
numbers for a model of all photos, which its recipe holds. Nothing is fitted to the images it is tested on. What FILE
holds of other models stays.

Three questions, and what users read:

    related    is a pair annotated as related?
    predicate  of a pair that is, which predicate? The first is a hit if it is any of those annotated
    relation   the best predicate of every pair, as `scenegpi predict` shows it: is it annotated?
    labels     of boxes whose labels are found (SGCls)

"Related" is what annotators wrote down, and they never write down all: what is measured is how well a model foretells
annotation. ECE is the expected calibration error over 15 bins of equal mass (and of equal width), in percent. "Chance"
is what it would reach 95 times in 100 if every probability were right, with pairs taken for independent. NLL is the
negative log-likelihood in nats (of a predicate: the mean over the rows of a pair). Gains are paired, with 95% intervals
by bootstrap over images.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from calibration_scores import BINS, REPLICATES, Said, figures, gains, questions
from rendered import labelled_scenes
from rows import predictions
from scenegpi.data import open_dataset
from scenegpi.files import read_object, write_json
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState, Result, compare
from scenegpi.models import SceneModel, load_model
from scenegpi.models.calibration import Calibration, Calibrations, Task, fit_calibration, fit_outcomes, joined, outcomes
from scenegpi.options import override, plain
from scenegpi.rendered import render_folder
from scenegpi.training import TrainConfig
from vrd_photos import SHIPPED, fold_photos, run_folder

RECALLS = ("R@20", "R@50", "R@100", "ngR@50", "mR@50")
SCENES, SCENE_SEEDS = 400, (101, 102)
"""Scenes to fit and to test; `rendered` was trained on those of seed 0."""


class Part(NamedTuple):
    """A model, images to test it on (with label distributions where labels are found), and images to fit to; without
    any, those of the other parts."""

    model: SceneModel
    test: Sequence[SceneGraph]
    fit: Sequence[SceneGraph] = ()


def fit(parts: Sequence[Part], task: Task, predicates: bool = False) -> list[Calibration]:
    """Of each part by its images to fit; of cross-validation by what the others say of their test images."""
    if all(part.fit for part in parts):
        return [fit_calibration(part.model, part.fit, task, predicates) for part in parts]
    said = [outcomes(part.model, part.test, task) for part in parts]
    others = [said[:k] + said[k + 1 :] for k in range(len(said))]
    return [fit_outcomes(joined(each), task == "sgcls", predicates) for each in [*others, said]]


def measure(title: str, parts: Sequence[Part], task: Task, predicates: bool = False) -> dict[str, Any]:
    """One row of every table: all parts together, without and with a calibration."""
    truth = [graph for part in parts for graph in part.test]
    said: list[dict[str, Said]] = []
    recall: list[Result] = []
    found_fits = fit(parts, task, predicates)
    fitted = [Calibrations(**{task: each}) for each in found_fits[: len(parts)]]
    neutral = [Calibrations()] * len(parts)
    for calibrations in (neutral,) if fitted == neutral else (neutral, fitted):
        found: list[SceneGraph] = []
        for part, calibration in zip(parts, calibrations, strict=True):
            part.model.calibration = calibration
            found += predictions(part.model, part.test, task)
        said.append(questions(found, truth, task))
        plan = Plan(Protocol(task, data=title), truth[0].vocabulary, bootstrap=REPLICATES)
        recall.append(RecallState(plan).update(found, truth).result())
    entry: dict[str, Any] = {"task": task, "test images": len(truth), "fitted to": [len(part.fit) for part in parts]}
    if len(found_fits) > len(parts):
        entry["fitted to"] = [len(truth) - len(part.test) for part in parts]
        entry["of a model of all images"] = plain(found_fits[-1])
    entry["predicates fitted"] = predicates
    entry["calibration"] = [plain(calibration.of(task)) for calibration in fitted]
    entry["questions"] = {
        name: {"n": len(said[0][name].rows), "before": figures(said[0][name]), "after": figures(said[-1][name])}
        | {"gain": gains(said[0][name], said[-1][name])}
        for name in said[0]
    }
    found_gains = compare(recall[0], recall[-1])
    entry["recall"] = {
        name: {"before": round(100 * recall[0].figures[name], 3), "after": round(100 * recall[-1].figures[name], 3)}
        | {"gain": [round(100 * v, 3) for v in (each.difference, each.low, each.high)]}
        for name, each in ((name, found_gains[name]) for name in RECALLS)
    }
    show(title, entry, [str(calibration.of(task)) for calibration in fitted])
    return entry


def show(title: str, entry: dict[str, Any], fitted: Sequence[str]) -> None:
    """Prints the rows of a model."""
    print(f"\n{title}, {entry['task']}, {entry['test images']:,} test images; fitted: {' | '.join(fitted)}\n")
    print("| | n | said / was, % | ECE, % | chance | fitted | equal width | fitted | NLL | gain | Brier | gain |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, each in entry["questions"].items():
        before, after = each["before"], each["after"]
        cells = [name, f"{each['n']:,}", f"{before['said']:.1f} / {before['was']:.1f}"]
        cells += [f"{before['ECE']:.2f}", f"{before['chance']:.2f}", f"{after['ECE']:.2f}"]
        cells += [f"{row['ECE, equal width']:.2f}" for row in (before, after)]
        for score in ("NLL", "Brier"):
            gain, low, high = each["gain"][score]
            cells += [f"{before[score]:.4f}", f"{gain:+.4f} [{low:+.4f}, {high:+.4f}]" if before != after else "0"]
        print("| " + " | ".join(cells) + " |")
    for when in ("before", "after"):
        n, said, was, error = (entry["questions"]["relation"][when][f"{x}, shown"] for x in ("n", "said", "was", "ECE"))
        print(f"\nrelations of 10% and more, {when}: {n:,}, said {said:.1f}%, was {was:.1f}%, ECE {error:.2f}", end="")
    recalls = []
    for name, each in entry["recall"].items():
        gain, low, high = each["gain"]
        recalls.append(f"{name} {each['before']:.2f} {gain:+.2f} [{low:+.2f}, {high:+.2f}]")
    print("\n\nrecall, gain by the calibration: " + ", ".join(recalls), flush=True)


def layout_part(model: str, fit: Iterable[SceneGraph], test: Iterable[SceneGraph]) -> Part:
    return Part(load_model(model), list(test), list(fit))


def rendered_part(folder: Path) -> Part:
    """Scenes are drawn unless they are there."""
    sides = []
    for seed in SCENE_SEEDS:
        place = folder / f"scenes-{seed}"
        if not place.is_dir():
            render_folder(place, SCENES, seed)
        sides.append(labelled_scenes("rendered", open_dataset(place)))
    return Part(load_model("rendered"), sides[1], sides[0])


def fold_parts(runs: Path) -> list[Part]:
    """The models of the cross-validation, each with the photos of its fold."""
    parts = []
    for folder in sorted(runs.glob("fold*")):
        run = run_folder(folder, SHIPPED)
        config = override(TrainConfig(), read_object(run / "config.json"), "")
        model = load_model(run / "model")
        parts.append(Part(model, fold_photos(model, config)))
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vg150", type=Path)
    parser.add_argument("--all-boxes", type=Path)
    parser.add_argument("--vrd", type=Path)
    parser.add_argument("--folds", type=Path, help="RUNS of `vrd_photos.py --boxes both`; nothing is changed in it")
    parser.add_argument("--scenes", type=Path, help="folder where scenes are drawn")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER", help="one more, on VG150")
    parser.add_argument("--predicates", action="store_true", help="fit a temperature of predicates, too")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "calibration.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found, also = {}, options.predicates
    if options.vg150:
        aside = open_dataset(options.vg150, "val", validation=1291).drop_empty()
        tests = {"": open_dataset(options.vg150, "test")}
        if options.all_boxes:
            tests[", all boxes"] = open_dataset(options.all_boxes)
        named = [word.partition("=")[::2] for word in options.model]
        for name, folder in [("vg150-layout", "vg150-layout"), *named]:
            for where, test in tests.items():
                found[name + where] = measure(name + where, [layout_part(folder, aside, test)], "predcls", also)
    if options.vrd:
        aside, test = open_dataset(options.vrd, "val", validation=400).drop_empty(), open_dataset(options.vrd, "test")
        found["vrd-layout"] = measure(
            "vrd-layout", [layout_part("vrd-layout", aside, test.drop_empty())], "predcls", also
        )
    if options.folds:
        parts = fold_parts(options.folds)
        for task in ("predcls", "sgcls"):
            title = f"vrd-photo's folds, {task}"
            found[title] = measure("vrd-photo's folds", parts, task, also)  # type: ignore[arg-type]
            print(f"\nfor a model of all photos: {found[title]['of a model of all images']}")
    if options.scenes:
        part = rendered_part(options.scenes)
        for task in ("predcls", "sgcls"):
            found[f"rendered, {task}"] = measure("rendered", [part], task, also)  # type: ignore[arg-type]
    if not found:
        parser.error("nothing to measure: give --vg150, --vrd, --folds or --scenes")
    about = {"command": "benchmarks/calibration.py", "bins": BINS, "gains": "paired, 95% by bootstrap over images"}
    known = read_object(options.json)["models"] if options.json.is_file() else {}
    write_json(options.json, {**about, "models": {**known, **found}})
    print(f"\n{options.json}: written")


if __name__ == "__main__":
    main()
