"""Predicate detection without pixels on VRD, official split: FREQ, FREQ + overlap, baseline, the presets with context.

    python benchmarks/vrd_predicates.py --data VRD --captions CAPTIONS --runs RUNS [--seeds 0 1 2] [--json FILE]

trains what RUNS does not hold yet (--validation training images choose the epoch), then scores on the 1,000 test
images. Boxes and labels are given. Recall@50 and @100 pooled over the data set, with the best predicate of each pair
(k = 1) and with all 70 (k = 70); zero-shot: rows whose triplet occurs in no training image. Two ways:

- all pairs: every ordered pair of boxes is ranked, so that the system also finds out which pairs are related;
- annotated pairs: only the pairs of the ground truth are, as in most published VRD tables. It gives away which pairs
  are related (R@50 = R@100 with k = 1 is the symptom), and is here to be compared with those.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch

from scenegpi.data import Dataset, open_dataset
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState, ZeroShot
from scenegpi.models import SceneModel, predict_dataset
from scenegpi.models.freq import FrequencyPrior
from scenegpi.training.folder import write_json
from seed_rows import (
    Row,
    average,
    learn_words,
    load_rows,
    markdown,
    plain_rows,
    score,
    score_seeds,
    train_rows,
)

_PAIRS = {"hidden": 128, "embedding": 32, "rank": 32}
_OPTIM = {"batch": 32, "patience": 4, "average": 0.99}
BASELINE = {"model": {"baseline": _PAIRS}, "optim": {**_OPTIM, "epochs": 8}}
CONTEXT = {
    "model": {"baseline": _PAIRS, "context": {"hidden": 128, "phi": 64, "alpha": 64, "dropout": 0.3}},
    "optim": {**_OPTIM, "epochs": 3},
}
"""A fifth of the images of VG150: half the width, smaller batches. Chosen by validation."""
FIGURES = {
    "R@50, k=1": "detection-R@50,k=1",
    "R@100, k=1": "detection-R@100,k=1",
    "R@50, k=70": "detection-R@50,k=70",
    "R@100, k=70": "detection-R@100,k=70",
    "zero-shot R@50, k=1": "pooled-zR@50",
    "zero-shot R@100, k=1": "pooled-zR@100",
    "zero-shot R@50, k=70": "pooled-ngzR@50",
    "zero-shot R@100, k=70": "pooled-ngzR@100",
}
"""How each figure is called here and in `scenegpi.metrics`; without the graph constraint all 70 predicates count."""


def annotated_only(predictions: Iterable[SceneGraph], targets: Iterable[SceneGraph]) -> Iterator[SceneGraph]:
    """Predictions for the pairs of the ground truth only."""
    for found, target in zip(predictions, targets, strict=True):
        wanted = {(s, o) for s, o, _ in target.relations.tolist()}
        if found.pairs is None or found.pair_dist is None:
            raise ValueError("predictions carry distributions of pairs")
        kept = np.array([pair in wanted for pair in map(tuple, found.pairs.tolist())], dtype=bool)
        yield found.replace(
            pairs=found.pairs[kept], pair_dist=found.pair_dist[kept], relations=(), relation_scores=None
        )


def score_annotated(models: list[SceneModel], data: Dataset, plan: Plan) -> Row:
    """One system from several seeds, on annotated pairs."""
    results = []
    for model in models:
        found = annotated_only(predict_dataset(model, data), data)
        results.append(RecallState(plan).stream(zip(found, data, strict=True)).result())
    return Row(average(results), results)


def named(rows: Mapping[str, Row]) -> dict[str, object]:
    """For JSON, with the figures' names of this page."""
    plain = plain_rows(rows, list(FIGURES.values()))
    names = {key: name for name, key in FIGURES.items()}
    return {
        row: {part: {names[key]: value for key, value in values.items()} for part, values in entry.items()}
        for row, entry in plain.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--captions", type=Path, help="without it gpi-linguistic is left out")
    parser.add_argument("--validation", type=int, default=400)
    parser.add_argument("--runs", type=Path, required=True, help="folder of the trained models")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    words = learn_words(options.captions, options.runs) if options.captions else None
    where = {"path": str(options.data), "validation": options.validation}
    folders = train_rows(options.runs, options.seeds, where, words, BASELINE, CONTEXT)
    train = open_dataset(options.data, "train", validation=options.validation)
    data = open_dataset(options.data, "test")
    # What occurs in any training image is no zero-shot triplet, also where the image was set aside for validation.
    zero_shot = ZeroShot.from_training(open_dataset(options.data, "train"))
    priors = [FrequencyPrior.fit(train), FrequencyPrior.fit(train, overlap=True)]
    found = {}
    for title in ("all pairs", "annotated pairs"):
        protocol = Protocol("predcls", ks=(50, 100), per_pair=(1, len(data.vocabulary.predicates)), data=title)
        plan = Plan(protocol, data.vocabulary, zero_shot, bootstrap=1000)
        rows = {}
        for prior in priors:
            predictions = prior.predict_all(data)
            if title != "all pairs":
                predictions = annotated_only(predictions, data)
            rows[prior.name] = score(predictions, data, plan)
        for name, models in load_rows(folders):
            rows[name] = (score_seeds if title == "all pairs" else score_annotated)(models, data, plan)
        found[title] = named(rows)
        print(f"\nVRD test images, predicate detection, {title}, in percent\n")
        print(markdown(found[title], list(FIGURES), "R@50, k=1"), flush=True)
    if options.json:
        about = {
            "task": "VRD predicate detection without pixels, official split, in percent; recall pooled over the test "
            "images; 95% intervals by bootstrap over images; gains over the baseline are paired",
            "training images": len(train),
            "validation images": options.validation,
            "test images": len(data),
            "seeds": options.seeds,
        }
        write_json(options.json, {**about, "pairs": found})


if __name__ == "__main__":
    main()
