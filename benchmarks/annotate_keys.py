"""How many keys the studio asks for a relation: `python benchmarks/annotate_keys.py --data VRD`.

Boxes and labels are given, and which pairs are related. Two letters relate a pair by the likeliest predicate that it
does not have yet (two keys); a digit from 1 to 9 chooses another (three keys); else it is typed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import islice

import numpy as np

from scenegpi import Predictor
from scenegpi.data import open_dataset
from scenegpi.prediction import Item, PredictOptions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--model", default="vrd-layout")
    parser.add_argument("--limit", type=int, default=None)
    args = parser.parse_args()
    graphs = [graph for graph in open_dataset(args.data, split=args.split) if len(graph.relations)]
    graphs = list(islice(graphs, args.limit))
    keys: Counter[str] = Counter()
    pairs = first = 0
    found = Predictor(args.model).stream(Item(None, graph, "", PredictOptions(distributions=True)) for graph in graphs)
    for graph, prediction in zip(graphs, found, strict=True):
        guess = prediction.graph
        assert guess is not None
        assert guess.pairs is not None
        assert guess.pair_dist is not None
        own = {place: row for row, place in enumerate(prediction.kept.tolist())}
        rows = {tuple(pair): k for k, pair in enumerate(guess.pairs.tolist())}
        said: dict[tuple[int, int], dict[str, None]] = {}
        for s, o, p in graph.relations.tolist():
            said.setdefault((s, o), {})[graph.vocabulary.predicates[p]] = None
        for (s, o), wanted in said.items():
            row = rows.get((own.get(s, -1), own.get(o, -1)))
            order = [] if row is None else np.argsort(-guess.pair_dist[row, 1:], kind="stable")
            ranked = [guess.vocabulary.predicates[p] for p in order]
            two = set(ranked[: len(wanted)]) & set(wanted)
            three = set(ranked[:9]) & set(wanted) - two
            keys.update(two=len(two), three=len(three), typed=len(wanted) - len(two) - len(three))
            pairs, first = pairs + 1, first + (ranked[:1] != [] and ranked[0] in wanted)
    total = keys.total()
    shares = ", ".join(f"{name} {100 * keys[name] / total:.1f}%" for name in ("two", "three", "typed"))
    print(f"{args.model}, {len(graphs):,} images, {total:,} relations: keys {shares}")
    print(f"{pairs:,} pairs; the first predicate is right for {100 * first / pairs:.1f}% of them")


if __name__ == "__main__":
    main()
