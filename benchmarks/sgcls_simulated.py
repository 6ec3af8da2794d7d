"""SGCls with SIMULATED label distributions on Visual Genome: a test of the code, not a result about images.

    python benchmarks/sgcls_simulated.py --data VG150 --runs RUNS [--images 6000] [--json FILE]

There are no pixels here. What a classifier might say of each box is made up from its true label and noise
(`scenegpi.training.simulate`), for training, validation and test images alike. FREQ and the baseline take or correct
the labels of each box alone; the preset with context reads all of them. One seed. What runs already is used again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from scenegpi.data import open_dataset
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol
from scenegpi.models import load_model, predict_dataset
from scenegpi.models.freq import FrequencyPrior
from scenegpi.training import train
from scenegpi.training.config import SimulateConfig, train_config
from scenegpi.training.folder import write_json
from scenegpi.training.run import read_run
from scenegpi.training.simulate import label_shares, simulated
from seed_rows import Row, markdown, plain_rows, score

FIGURES = ["R@20", "R@50", "R@100", "ngR@50", "ngR@100", "mR@50"]
CONTEXT = "gpi-feature-attention"


def label_accuracy(predictions: list[SceneGraph], truth: list[SceneGraph]) -> float:
    """Share of boxes with the right label, in percent."""
    right = [found.labels == graph.labels for found, graph in zip(predictions, truth, strict=True)]
    return round(100 * float(np.mean(np.concatenate(right))), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--validation", type=int, default=1291)
    parser.add_argument("--images", type=int, default=6000, help="training images; 0 for all")
    parser.add_argument("--test-images", type=int, default=2000)
    parser.add_argument("--strength", type=float, default=3.0, help="of the true label; 5 leaves 2% of labels wrong")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    where = {"path": str(options.data), "validation": options.validation, "images": options.images}
    models = {}
    for name in ("baseline", CONTEXT):
        folder = options.runs / name
        if not (folder / "finished.json").is_file():
            print(f"{folder}: training", flush=True)
            values = {"preset": name, "task": "sgcls", "data": where, "simulate": {"strength": options.strength}}
            if name == CONTEXT:
                values["start"] = str(options.runs / "baseline" / "model")
            resume = (folder / "config.json").is_file()
            train(read_run(folder) if resume else train_config(values), folder, resume=resume)
        models[name] = load_model(folder / "model")
    data = open_dataset(options.data, "train", validation=options.validation)
    if options.images:
        data = data[: options.images]
    truth = list(open_dataset(options.data, "test")[: options.test_images])
    shares = label_shares(data, len(data.vocabulary.objects))
    given = list(simulated(truth, shares, SimulateConfig(strength=options.strength), seed=1))
    plan = Plan(Protocol("sgcls", data="simulated label distributions"), data.vocabulary, bootstrap=1000)
    found = {"FREQ, labels as simulated": list(FrequencyPrior.fit(data).predict_all(given))}
    found |= {name: list(predict_dataset(model, given, "sgcls")) for name, model in models.items()}
    rows: dict[str, Row] = {name: score(graphs, truth, plan) for name, graphs in found.items()}
    plain = plain_rows(rows, FIGURES)
    for name, graphs in found.items():
        plain[name]["label accuracy"] = label_accuracy(graphs, truth)
    print(f"\nSGCls, SIMULATED label distributions, {len(truth):,} test images, in percent\n")
    print(markdown(plain, FIGURES, "R@50"))
    print({name: entry["label accuracy"] for name, entry in plain.items()})
    if options.json:
        about = {
            "task": "SGCls with SIMULATED label distributions, in percent; a test of the code",
            "strength": options.strength,
            "training images": len(data),
            "test images": len(truth),
            "seeds": [0],
        }
        write_json(options.json, {**about, "rows": plain})


if __name__ == "__main__":
    main()
