"""The evaluation rules written out in Python loops, sharing nothing with the package. Images are dicts in the field's
convention (classes and predicates from 1). Slow on purpose: the tests hold the package against it."""

from __future__ import annotations

NOWHERE = 10**9


def iou(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0]) + 1
    height = min(a[3], b[3]) - max(a[1], b[1]) + 1
    inter = max(width, 0) * max(height, 0)
    area_a = (a[2] - a[0] + 1) * (a[3] - a[1] + 1)
    area_b = (b[2] - b[0] + 1) * (b[3] - b[1] + 1)
    return inter / (area_a + area_b - inter)


def complete(prediction, target, task):
    """The prediction with what the task gives put in."""
    full = dict(prediction)
    if task != "sgdet":
        full["boxes"] = target["boxes"]
    if task == "predcls":
        full["labels"], full["scores"] = target["labels"], [1.0] * len(target["labels"])
    full.setdefault("scores", [1.0] * len(full["labels"]))
    return full


def is_empty(prediction):
    return not prediction.get("pairs") and not prediction.get("relations")


def pair_lists(prediction):
    """[(subject, object, [(probability, predicate), best first])], pairs in the order of the input."""
    if prediction.get("pairs"):
        found = []
        for (s, o), dist in zip(prediction["pairs"], prediction["rel_scores"], strict=True):
            offers = [(dist[p], p) for p in range(1, len(dist))]
            found.append((s, o, sorted(offers, key=lambda offer: (-offer[0], offer[1]))))
        return found
    listed = {}
    scores = prediction.get("relation_scores") or [1.0] * len(prediction["relations"])
    for (s, o, p), score in zip(prediction["relations"], scores, strict=True):
        offers = listed.setdefault((s, o), {})
        offers[p] = max(score, offers.get(p, -1.0))
    return [
        (s, o, sorted(((q, p) for p, q in offers.items()), key=lambda offer: -offer[0]))
        for (s, o), offers in listed.items()
    ]


def ranking(prediction, per_pair, only=None):
    """[(subject, object, predicate)] best first; at most `per_pair` predicates a pair; `only` these pairs."""
    found = []
    for place, (s, o, offers) in enumerate(pair_lists(prediction)):
        if only is not None and (s, o) not in only:
            continue
        weight = prediction["scores"][s] * prediction["scores"][o]
        for probability, p in offers[:per_pair]:
            found.append((-(weight * probability), place, p, (s, o, p)))
    return [triplet for _, _, _, triplet in sorted(found)]


def first_match(row, triplets, prediction, target, identity=False):
    """The rank of the first triplet that matches a ground-truth row; with `identity` by the same boxes (by index)."""
    s, o, p = row
    for rank, (a, b, q) in enumerate(triplets):
        classes = (prediction["labels"][a], q, prediction["labels"][b])
        if classes != (target["labels"][s], p, target["labels"][o]):
            continue
        if identity:
            if (a, b) == (s, o):
                return rank
            continue
        if (
            iou(prediction["boxes"][a], target["boxes"][s]) < 0.5
            or iou(prediction["boxes"][b], target["boxes"][o]) < 0.5
        ):
            continue
        return rank
    return NOWHERE


def matching_triplets(rows, triplets, prediction, target, identity):
    """The ranks of all triplets that match some row."""
    ranks = range(len(triplets))
    return [r for r in ranks if any(first_match(w, [triplets[r]], prediction, target, identity) == 0 for w in rows)]


def harmonic(a, b):
    return 0.0 if a + b == 0 else 2 * a * b / (a + b)


def mean(values):
    return sum(values) / len(values) if values else float("nan")


def brute_force(predictions, targets, task, ks, predicates, zero_shot, empty, per_pair=(), pair_k=5, identity=False):
    """Every figure, `empty` = "zero" or "skip"; `zero_shot` lists (subject class, object class, predicate)."""
    rows_of = []  # (target, {ranking name: [rank of each row]}, [place in own pair])
    hits_of = []  # ranks of the triplets of an image that match
    for prediction, target in zip(predictions, targets, strict=True):
        rows = target["relations"]
        if not rows:
            continue
        if is_empty(prediction):
            if empty == "zero":
                names = ["", "ng", "A", *per_pair]
                rows_of.append((target, {name: [NOWHERE] * len(rows) for name in names}, [NOWHERE] * len(rows)))
                hits_of.append([])
            continue
        full = complete(prediction, target, task)
        true_pairs = {(s, o) for s, o, _ in rows}
        lists = {"": ranking(full, 1), "ng": ranking(full, None), "A": ranking(full, 1, true_pairs)}
        lists |= {k: ranking(full, k) for k in per_pair}
        ranks = {
            name: [first_match(row, found, full, target, identity) for row in rows] for name, found in lists.items()
        }
        places = []
        for s, o, p in rows:
            offers = next((offers for a, b, offers in pair_lists(full) if (a, b) == (s, o)), [])
            names = [q for _, q in offers]
            places.append(names.index(p) if p in names else NOWHERE)
        rows_of.append((target, ranks, places))
        hits_of.append(matching_triplets(rows, lists[""], full, target, identity))

    figures = {}
    for k in (*ks, "rows"):
        for x in ("", "ng"):
            bound = [len(target["relations"]) if k == "rows" else k for target, _, _ in rows_of]
            hits = [[rank < b for rank in ranks[x]] for b, (_, ranks, _) in zip(bound, rows_of, strict=True)]
            figures[f"{x}R@{k}"] = mean([mean(hit) for hit in hits])
            figures[f"pooled-{x}R@{k}"] = mean([h for hit in hits for h in hit])
            by_predicate = {}
            for p in range(1, predicates + 1):
                recalls = []
                for (target, _, _), hit in zip(rows_of, hits, strict=True):
                    mine = [h for h, row in zip(hit, target["relations"], strict=True) if row[2] == p]
                    if mine:
                        recalls.append(mean(mine))
                if recalls:
                    by_predicate[p] = mean(recalls)
            figures[f"{x}mR@{k}"] = sum(by_predicate.values()) / predicates if rows_of else float("nan")
            figures[f"occurring-{x}mR@{k}"] = mean(list(by_predicate.values()))
            unseen = []
            for (target, _, _), hit in zip(rows_of, hits, strict=True):
                labels = target["labels"]
                mine = [
                    h
                    for h, (s, o, p) in zip(hit, target["relations"], strict=True)
                    if (labels[s], labels[o], p) in zero_shot
                ]
                if mine:
                    unseen.append(mine)
            figures[f"{x}zR@{k}"] = mean([mean(mine) for mine in unseen])
            figures[f"pooled-{x}zR@{k}"] = mean([h for mine in unseen for h in mine])
        if k == "rows":
            continue
        figures[f"F1@{k}"] = harmonic(figures[f"R@{k}"], figures[f"mR@{k}"])
        weighted = []
        for (target, _, _), ranks in zip(rows_of, hits_of, strict=True):
            wrong_before = [rank - i for i, rank in enumerate(ranks) if rank < k]
            weighted.append(sum((k - wrong) / k for wrong in wrong_before) / len(target["relations"]))
        figures[f"weighted-R@{k}"] = mean(weighted)
        if task != "sgdet":
            figures[f"A@{k}"] = mean([rank < k for _, ranks, _ in rows_of for rank in ranks["A"]])
        for per in per_pair:
            figures[f"detection-R@{k},k={per}"] = mean([rank < k for _, ranks, _ in rows_of for rank in ranks[per]])
    if task == "predcls":
        figures[f"pair-R@{pair_k}"] = mean([place < pair_k for _, _, places in rows_of for place in places])
    figures["relative-R"], figures["relative-mR"] = figures["R@rows"], figures["mR@rows"]
    return {name: value for name, value in figures.items() if not name.endswith("@rows")}
