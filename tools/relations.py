"""Recall@5 of each relation of the paper's appendix, and why one is missed: PredCls without pixels.

    python tools/relations.py --data VG150 [--model NAME ...] [--informative T] [--images N]

Is the true predicate of a pair among its five best? Beside it, for the first model: the same where training relations
have the triplet of these labels and this predicate, the share of test relations whose triplet they do not have, and
the share of those among the missed ones. --images takes fewer training images to tell which triplets are new.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from scenegpi.data import open_dataset
from scenegpi.metrics.published import PREDICATE_RECALL_AT_5
from scenegpi.models import load_model
from scenegpi.models.prior import relation_table
from scenegpi.prediction import PredictOptions, Predictor

BEST, ASIDE = 5, 1291


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", nargs="+", default=["vg150-layout"])
    parser.add_argument("--informative", type=float, default=0.0, help="how much rare predicates are preferred")
    parser.add_argument("--images", type=int, default=0, help="number of training images; by default all")
    options = parser.parse_args()
    test = open_dataset(options.data, "test")
    train = open_dataset(options.data, "train", validation=ASIDE).spread(options.images)
    trained = relation_table(train) > 0
    columns = []
    for name in options.model:
        model, hits = load_model(name), []
        counts = model.relation_counts
        predictor = Predictor(model, options=PredictOptions.scoring("predcls"))
        for graph, prediction in zip(test, predictor.stream(test), strict=True):
            predicted = prediction.graph
            rows = np.unique(graph.relations[graph.relations[:, 0] != graph.relations[:, 1]], axis=0)
            edges = np.zeros((len(graph), len(graph), 1 + len(graph.vocabulary.predicates)))
            dist = predicted.pair_dist
            edges[tuple(predicted.pairs.T)] = counts.informative(dist, options.informative) if counts else dist
            said, truth = edges[rows[:, 0], rows[:, 1], 1:], rows[:, 2:]
            better = (said > np.take_along_axis(said, truth, 1)).sum(1)
            known = trained[(*graph.labels[rows[:, :2]].T, 1 + rows[:, 2])]
            hits.append(np.stack([rows[:, 2], better < BEST, known], 1))
        columns.append(np.concatenate(hits))
    kinds = columns[0]
    print(
        f"triplets of {len(train):,} training images; new: {100 * (1 - kinds[:, 2].mean()):.1f}% of all test relations"
    )
    print("| | relations |", " | ".join(options.model), "| published | triplet seen | new triplets | of the missed |")
    for word, (*_, published) in PREDICATE_RECALL_AT_5.items():
        mine = [rows[kinds[:, 0] == test.vocabulary.predicates.index(word), 1:] for rows in columns]
        shares = [f"{100 * rows[:, 0].mean():.1f}" for rows in mine]
        hit, known = mine[0].T == 1
        told = (published, hit[known].mean(), 1 - known.mean(), 1 - known[~hit].mean())
        more = [f"{100 * share:.1f}" for share in told]
        print("|", " | ".join([word, f"{len(hit):,}", *shares, *more]), "|", flush=True)


if __name__ == "__main__":
    main()
