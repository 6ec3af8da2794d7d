"""What was tried for the context, each change alone, on validation images: one seed, fewer training images.

    python benchmarks/tried.py --data VG150 --runs RUNS [--words WORDS] [--images 5000] [--json FILE]

All variants stand on the same baseline, and are compared with it and with the preset gpi-feature-attention on the
validation images alone; test images are not looked at. With --images 5000 a variant costs a minute or two of a core.
What RUNS holds already is used again.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from scenegpi.metrics import Plan, Protocol
from scenegpi.models import load_model, predict_dataset
from scenegpi.training import train
from scenegpi.training.config import TrainConfig, train_config
from scenegpi.training.data_split import Images, open_images
from scenegpi.training.folder import write_json
from scenegpi.training.run import train_graph
from seed_rows import BASELINE, markdown, plain_rows, score

FIGURES = ["R@20", "R@50", "R@100", "mR@50"]
PRESET = "gpi-feature-attention"
CROSS_FITTED = "baseline cross-fitted"
_HANDED_ON = {"layers": 0, "prior": "given", "refine_labels": False}
VARIANTS: dict[str, dict[str, Any]] = {
    PRESET: {},
    "no boxes left out": {"augment": {"drop": 0.0}},
    "word vectors": {"preset": "gpi-linguistic"},
    "two steps": {"model": {"context": {"steps": 2}}},
    "boxes of other images added": {"augment": {"distractors": 0.3}},
    "listwise ranking loss": {"loss": {"ranking": "listwise"}},
    "pairwise ranking loss": {"loss": {"ranking": "pairwise"}},
    CROSS_FITTED: {
        "model": {"baseline": _HANDED_ON, "context": {"freeze": False}},
        "augment": {"mirror": False},
        "optim": {"epochs": 4, "first_epochs": 0},
    },
    "not mirrored": {"augment": {"mirror": False}},
    "more dropout (0.4, inputs 0.2)": {"model": {"context": {"dropout": 0.4, "input_dropout": 0.2}}},
    "baseline not frozen": {"model": {"context": {"freeze": False}}},
    "reads the baseline's hidden layer": {"model": {"context": {"read_hidden": True}}},
    "the paper's loss": {"loss": {"kind": "paper", "negatives": 0.1}},
    "the paper's widths (500)": {"model": {"context": {"hidden": 500, "phi": 500, "alpha": 500}}},
}


def run(folder: Path, values: Mapping[str, Any], images: Images | None = None) -> Path:
    """The model of a run, trained unless it is there."""
    if not (folder / "finished.json").is_file():
        print(f"{folder}: training", flush=True)
        config: TrainConfig = train_config(values)
        if images is None:
            train(config, folder)
        else:
            train_graph(config, images, None, folder, False, False)
    return folder / "model"


def cross_fitted(runs: Path, where: Mapping[str, Any], images: Images, whole: Path) -> Images:
    """The images with the distributions of a baseline that has not seen them: each half by the other's."""
    halves = [images.train[k::2] for k in range(2)]
    found = []
    for k in range(2):
        part = images._replace(train=halves[1 - k])
        model = load_model(run(runs / f"half{1 - k}", {"preset": BASELINE, "data": where}, part))
        for old, new in zip(halves[k], predict_dataset(model, halves[k]), strict=True):
            found.append(old.replace(pairs=new.pairs, pair_dist=new.pair_dist))
    model = load_model(whole)
    validation = [
        old.replace(pairs=new.pairs, pair_dist=new.pair_dist)
        for old, new in zip(images.validation, predict_dataset(model, images.validation), strict=True)
    ]
    return images._replace(train=found, validation=validation)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--words", help="word vectors; without them that variant is left out")
    parser.add_argument("--validation", type=int, default=1291)
    parser.add_argument("--images", type=int, default=5000, help="training images; 0 for all")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    where = {"path": str(options.data), "validation": options.validation, "images": options.images}
    images = open_images(train_config({"data": where}).data)
    whole = run(options.runs / BASELINE, {"preset": BASELINE, "data": where})
    models, validation = {BASELINE: whole}, {}
    for name, changes in VARIANTS.items():
        values: dict[str, Any] = {"preset": PRESET, "data": dict(where), **changes}
        if values["preset"] == "gpi-linguistic":
            if options.words is None:
                continue
            values["data"]["words"] = options.words
        folder = options.runs / name.split(" (")[0].replace(" ", "-").replace("'", "")
        if name == CROSS_FITTED:
            fitted = cross_fitted(options.runs, where, images, whole)
            models[name], validation[name] = run(folder, values, fitted), fitted.validation
        else:
            models[name] = run(folder, {**values, "start": str(whole)})
    plan = Plan(Protocol("predcls"), images.vocabulary, bootstrap=1000)
    rows = {}
    for name, path in models.items():
        given = validation.get(name, images.validation)
        rows[name] = score(predict_dataset(load_model(path), given), images.validation, plan)
    plain = plain_rows(rows, FIGURES)
    print(
        f"\n{len(images.train):,} training images, {len(images.validation):,} validation images, PredCls, in percent\n"
    )
    print(markdown(plain, FIGURES, "R@50"))
    if options.json:
        about = {
            "task": "PredCls on validation images, in percent; gains over the baseline, paired over images",
            "training images": len(images.train),
            "validation images": len(images.validation),
            "seeds": [0],
        }
        write_json(options.json, {**about, "rows": plain})


if __name__ == "__main__":
    main()
