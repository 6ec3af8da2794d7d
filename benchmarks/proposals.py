"""How much of an annotator's work the studio's proposals do: VRD's annotated relations among what the model proposes.

    python benchmarks/proposals.py --data VRD [--model vrd-layout] [--json FILE]

Boxes and labels of the official test images are given, as they are to an annotator who relates boxes; the model has
never seen them. A relation counts as proposed where its predicate is among the first FIVE of its pair, or where the
whole relation is among the first TWENTY proposals of its image. Options are the studio's.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.data import open_dataset
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.prediction import Item, PredictOptions, Predictor

FIVE, TWENTY = 5, 20
STUDIO = PredictOptions(top=100, min_relation=0.0, distributions=True)


def proposed(found: SceneGraph, truth: SceneGraph) -> list[tuple[bool, bool]]:
    """For each annotated relation: among the first five of its pair; among the first twenty of the image."""
    assert found.pairs is not None
    assert found.pair_dist is not None
    place = {tuple(pair): k for k, pair in enumerate(found.pairs.tolist())}
    best = np.argsort(-found.pair_dist[:, 1:], axis=1, kind="stable")[:, :FIVE]
    first = {tuple(row) for row in found.relations[:TWENTY].tolist()}
    rows = []
    for s, o, p in {tuple(row) for row in truth.relations.tolist()}:
        if s != o:  # a box is never related to itself here
            rows.append((p in best[place[s, o]].tolist(), (s, o, p) in first))
    return rows


def measure(data: Path, model: str) -> dict[str, Any]:
    """Shares over all annotated relations of the test images."""
    graphs = [graph for graph in open_dataset(data, split="test") if len(graph.relations)]
    predictor = Predictor(model, options=STUDIO)
    rows: list[tuple[bool, bool]] = []
    for truth, answer in zip(
        graphs, predictor.stream(Item(None, graph.replace(relations=())) for graph in graphs), strict=True
    ):
        if answer.graph is None or len(answer.graph) != len(truth):
            raise SystemExit(answer.problem or f"{truth.file}: a box was left out")
        rows += proposed(answer.graph, truth)
    five, twenty = np.array(rows).T
    share = {"first five of the pair": five, "first twenty of the image": twenty, "either": five | twenty}
    return {
        "model": model,
        "images": len(graphs),
        "relations": len(rows),
        **{name: round(100 * float(hits.mean()), 1) for name, hits in share.items()},
    }


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="vrd-layout")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    figures = measure(args.data, args.model)
    for name, value in figures.items():
        print(f"{name}: {value}")
    if args.json:
        write_json(args.json, figures)


if __name__ == "__main__":
    main()
