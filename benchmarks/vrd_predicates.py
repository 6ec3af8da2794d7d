r"""Predicate detection without pixels on VRD, official split: FREQ, FREQ + overlap, baseline, the presets with context.

    python benchmarks/vrd_predicates.py --data VRD --words WORDS --runs RUNS [--seeds 0 1 2] \
        [--systems] [--rows NAME ...] [--json FILE]

trains what RUNS does not hold yet by the recipe `vrd-layout`, then scores on the 1,000 test images. WORDS are from
`scenegpi words train`. Boxes and labels are given. Recall@50 and @100 pooled over the data set, with the best predicate
of each pair (k = 1) and with all 70 (k = 70); zero-shot: rows whose triplet occurs in no training image. Two ways:

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

from rows import (
    BASELINE,
    REPLICATES,
    Row,
    average,
    markdown,
    plain_rows,
    predictions,
    score,
    score_seeds,
    train_presets,
    usable_presets,
)
from scenegpi.data import Dataset, open_dataset
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState, ZeroShot
from scenegpi.models import SceneModel, load_model
from scenegpi.models.freq import FrequencyPrior
from scenegpi.training import find_recipe, read_config

RECIPE = "vrd-layout"
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


def annotated_only(found: Iterable[SceneGraph], targets: Iterable[SceneGraph]) -> Iterator[SceneGraph]:
    """Predictions for the pairs of the ground truth only."""
    for graph, target in zip(found, targets, strict=True):
        wanted = {(s, o) for s, o, _ in target.relations.tolist()}
        if graph.pairs is None or graph.pair_dist is None:
            raise ValueError("predictions carry distributions of pairs")
        kept = np.array([pair in wanted for pair in map(tuple, graph.pairs.tolist())], dtype=bool)
        yield graph.replace(
            pairs=graph.pairs[kept], pair_dist=graph.pair_dist[kept], relations=(), relation_scores=None
        )


def score_annotated(models: list[SceneModel], data: Dataset, plan: Plan) -> Row:
    """One system from several seeds, on annotated pairs."""
    results = []
    for model in models:
        found = annotated_only(predictions(model, data, "predcls"), data)
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
    parser.add_argument("--words", type=Path, help="word vectors; without them gpi-linguistic is left out")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the trained models")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--systems", action="store_true", help="also the systems that GPI is compared with")
    parser.add_argument("--rows", nargs="+", help="names of rows beside the baseline; by default all")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    where = {"path": str(options.data), "words": None if options.words is None else str(options.words)}
    presets = usable_presets(options.words, options.systems)
    if options.rows:
        presets = [name for name in presets if name in {BASELINE, *options.rows}]
    folders = train_presets(RECIPE, options.runs, options.seeds, {"data": where}, presets)
    aside = read_config(find_recipe(RECIPE), {}).data.validation
    train = open_dataset(options.data, "train", validation=aside or 0)
    data = open_dataset(options.data, "test")
    # What occurs in any training image is no zero-shot triplet, also where the image was set aside for validation.
    zero_shot = ZeroShot.from_training(open_dataset(options.data, "train"))
    priors = [FrequencyPrior.fit(train), FrequencyPrior.fit(train, overlap=True)]
    found = {}
    for title in ("all pairs", "annotated pairs"):
        protocol = Protocol("predcls", ks=(50, 100), per_pair=(1, len(data.vocabulary.predicates)), data=title)
        plan = Plan(protocol, data.vocabulary, zero_shot, bootstrap=REPLICATES)
        rows = {}
        for prior in priors:
            said = prior.predict_all(data)
            rows[prior.name] = score(said if title == "all pairs" else annotated_only(said, data), data, plan)
        for name, paths in folders.items():
            models = [load_model(path) for path in paths]
            rows[name] = (score_seeds if title == "all pairs" else score_annotated)(models, data, plan)
        found[title] = named(rows)
        print(f"\nVRD test images, predicate detection, {title}, in percent\n")
        print(markdown(found[title], list(FIGURES), "R@50, k=1"), flush=True)
    if options.json:
        about = {
            "task": "VRD predicate detection without pixels, official split, in percent; recall pooled over the test "
            "images; 95% intervals by bootstrap over images; gains over the baseline are paired",
            "training images": len(train),
            "validation images": aside,
            "test images": len(data),
            "seeds": options.seeds,
        }
        write_json(options.json, {**about, "pairs": found})


if __name__ == "__main__":
    main()
