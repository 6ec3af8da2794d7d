"""How many keys the studio asks for a relation: `python benchmarks/annotate_keys.py --data VRD`.

Boxes and labels are given, and which pairs are related, in the order of the file. Two letters relate a pair by the
likeliest predicate that it does not have yet (two keys); a digit from 1 to 9 chooses another (three keys); else it is
typed. As in the page, the model's ten likeliest predicates of a pair are ranked anew by what was said of the picture's
pairs before it; `--alone` leaves that out. `--validation` takes the training images that `vrd-layout` was not trained
on, the first 400.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np

from scenegpi import Predictor
from scenegpi.data import open_dataset
from scenegpi.prediction import Item, PredictOptions

OFFERED, VALIDATION = 10, 400


def in_context(
    ranked: Sequence[tuple[str, float]], said: Sequence[tuple[int, int, str]], pair: tuple[int, int], names: list[str]
) -> list[str]:
    """Predicates of a pair in the order of the page (`inContext` in proposals.js): shares of what was said count."""
    others = [each for each in said if each[:2] != pair]
    like = [[each for each in others if names[each[end]] == names[pair[end]]] for end in (0, 1)]
    kinds = [(some, len(some)) for some in (others, *like) if some]

    def weight(name: str) -> float:
        return sum(sum(each[2] == name for each in some) / count for some, count in kinds)

    return [name for name, _ in sorted(ranked, key=lambda each: -each[1] * np.exp(weight(each[0])))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--model", default="vrd-layout")
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--alone", action="store_true")
    args = parser.parse_args()
    split, limit = ("train", VALIDATION) if args.validation else (args.split, args.limit)
    graphs = list(islice((graph for graph in open_dataset(args.data, split=split) if len(graph.relations)), limit))
    keys: Counter[str] = Counter()
    pairs = first = 0
    found = Predictor(args.model).stream(Item(None, graph, "", PredictOptions(distributions=True)) for graph in graphs)
    for graph, prediction in zip(graphs, found, strict=True):
        guess = prediction.graph
        assert guess is not None
        assert guess.pairs is not None
        assert guess.pair_dist is not None
        words = guess.vocabulary.predicates
        own = {place: row for row, place in enumerate(prediction.kept.tolist())}
        rows = {tuple(pair): k for k, pair in enumerate(guess.pairs.tolist())}
        said: dict[tuple[int, int], dict[str, None]] = {}
        for s, o, p in graph.relations.tolist():
            said.setdefault((s, o), {})[graph.vocabulary.predicates[p]] = None
        before: list[tuple[int, int, str]] = []
        for (s, o), wanted in said.items():
            row = rows.get((own.get(s, -1), own.get(o, -1)))
            order = [] if row is None else np.argsort(-guess.pair_dist[row, 1:], kind="stable")
            shares = [(words[p], float(guess.pair_dist[row, p + 1])) for p in order[:OFFERED]]
            ranked = in_context(shares, [] if args.alone else before, (s, o), list(graph.names))
            before += [(s, o, name) for name in wanted]
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
