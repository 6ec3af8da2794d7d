"""Random images of realistic shape for tests of the metrics: many at once, in the npz layout and as dicts."""

from __future__ import annotations

import numpy as np

CLASSES, PREDICATES = 12, 6


def random_image(rng, n=None, skill=3.0):
    """(prediction, target) as dicts for PredCls; a larger `skill` puts more weight on the true predicates."""
    n = int(rng.integers(2, 7)) if n is None else n
    start = rng.uniform(0, 60, (n, 2))
    target = {
        "boxes": np.hstack([start, start + rng.uniform(5, 40, (n, 2))]),
        "labels": rng.integers(1, CLASSES + 1, n),
        "image_id": int(rng.integers(2**40)),
    }
    pairs = np.array([(i, j) for i in range(n) for j in range(n) if i != j], dtype=int).reshape(-1, 2)
    rows = pairs[rng.random(len(pairs)) < 0.4]
    target["relations"] = np.column_stack([rows, rng.integers(1, PREDICATES + 1, len(rows))])
    logits = rng.normal(0, 1, (len(pairs), 1 + PREDICATES))
    for s, o, p in target["relations"]:
        logits[(pairs == (s, o)).all(axis=1), p] += skill * rng.random()
    scores = np.exp(logits)
    return {"pairs": pairs, "rel_scores": scores / scores.sum(axis=1, keepdims=True)}, target


def random_images(seed, count, skill=3.0):
    """Lists of predictions and targets. The targets depend on the seed only, whatever the skill."""
    rng = np.random.default_rng(seed)
    images = [random_image(np.random.default_rng(s), skill=skill) for s in rng.integers(2**32, size=count)]
    return [p for p, _ in images], [t for _, t in images]


def npz_arrays(seed, count):
    """Arrays of the npz layout, with images that lack predictions, relations or boxes."""
    rng = np.random.default_rng(seed)
    out = {key: [] for key in ("gt_boxes", "gt_classes", "gt_rels", "pred_boxes", "pred_classes", "obj_scores")}
    out |= {"rel_pairs": [], "rel_scores": []}
    sizes = []
    for number in range(count):
        prediction, target = random_image(rng, n=(1 if number == 1 else 0 if number == 2 else None))
        n = len(target["boxes"])
        if number == 3:
            prediction = {key: value[:0] for key, value in prediction.items()}
        if number == 4:
            target["relations"] = target["relations"][:0]
        for key, value in zip(("gt_boxes", "gt_classes", "gt_rels"), target.values(), strict=False):
            out[key].append(value)
        out["gt_rels"][-1] = target["relations"]
        out["pred_boxes"].append(target["boxes"] + rng.normal(0, 2, (n, 1)))
        out["pred_classes"].append(np.where(rng.random(n) < 0.8, target["labels"], rng.integers(1, CLASSES + 1, n)))
        out["obj_scores"].append(rng.uniform(0.1, 1, n).astype(np.float32))
        out["rel_pairs"].append(prediction["pairs"])
        out["rel_scores"].append(prediction["rel_scores"].astype(np.float32))
        sizes.append((n, len(target["relations"]), n, len(prediction["pairs"])))
    arrays = {key: np.concatenate(parts) for key, parts in out.items()}
    ends = np.vstack([[0, 0, 0, 0], np.cumsum(sizes, axis=0)])
    for name, column in zip(("gt_box_ptr", "gt_rel_ptr", "pred_box_ptr", "rel_ptr"), ends.T, strict=True):
        arrays[name] = column
    triplets = [
        rng.integers(1, CLASSES + 1, 300),
        rng.integers(1, CLASSES + 1, 300),
        rng.integers(1, PREDICATES + 1, 300),
    ]
    arrays["zeroshot"] = np.unique(np.column_stack(triplets), axis=0)
    return arrays


def npz_as_dicts(arrays, task):
    """The same images as dicts, for the loops."""
    predictions, targets = [], []
    for i in range(len(arrays["gt_box_ptr"]) - 1):
        box, rel, pred, pair = (
            slice(arrays[name][i], arrays[name][i + 1])
            for name in ("gt_box_ptr", "gt_rel_ptr", "pred_box_ptr", "rel_ptr")
        )
        target = {
            "boxes": arrays["gt_boxes"][box].tolist(),
            "labels": arrays["gt_classes"][box].tolist(),
            "relations": [tuple(row) for row in arrays["gt_rels"][rel].tolist()],
        }
        prediction = {
            "pairs": [tuple(row) for row in arrays["rel_pairs"][pair].tolist()],
            "rel_scores": arrays["rel_scores"][pair].tolist(),
        }
        if task != "predcls":
            prediction["labels"] = arrays["pred_classes"][pred].tolist()
            prediction["scores"] = arrays["obj_scores"][pred].tolist()
        if task == "sgdet":
            prediction["boxes"] = arrays["pred_boxes"][pred].tolist()
        predictions.append(prediction)
        targets.append(target)
    return predictions, targets


def flat(intervals):
    """{figure: (low, high)} as one flat dict, which pytest.approx takes."""
    return {(name, end): value for name, ends in intervals.items() for end, value in zip("lh", ends, strict=True)}
