"""Does the graph say what people do? Actions of V-COCO, boxes and labels given.

    python benchmarks/actions.py --rows train.npz --actions actions.json [--model vg150-photo] [--every N]
    python benchmarks/actions.py --rows train.npz --actions actions.json --every N --write more.json

The npz has a row per person, action and object: `image_id`, `person_u16` and `object_u16` (x1, y1, x2, y2 in 65,535ths
of the frame), `action` (number in the JSON list) and `object` (COCO class 0 to 79). Of the pairs whose action one of
the model's predicates names: the share where one of the first 1, 2, 3 predicates of the pair is right. `--write` writes
the rows of all photos but every n-th as a COCO file with relations, which `scenegpi train --relations` counts.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.features.arrays import SceneArrays
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.models import load_model
from scenegpi.pairs import complete_pairs
from scenegpi.progress import watched
from scenegpi.words.everyday import STANDS_FOR, may_be

SIDE = 256
PREDICATES = {
    "hold": "holding",
    "sit": "sitting on",
    "look": "looking at",
    "eat": "eating",
    "lay": "laying on",
    "carry": "carrying",
    **dict.fromkeys(("talk_on_phone", "work_on_computer"), "using"),
    **dict.fromkeys(("ride", "ski", "surf", "skateboard", "snowboard"), "riding"),
}
"""Others (hit, throw, catch, ...) have no predicate in Visual Genome."""


def read_rows(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {name: file[name] for name in ("image_id", "person_u16", "object_u16", "action", "object")}


def write_rows(rows: dict[str, np.ndarray], actions: list[str | None], left_out: set[int], target: Path) -> None:
    """The rows whose action a predicate names, of all photos but those left out."""
    names = sorted(set(filter(None, actions)))
    boxes: dict[tuple[int, ...], int] = {}
    relations: dict[tuple[int, int, int, int], None] = {}
    for k in np.flatnonzero(~np.isin(rows["image_id"], list(left_out))).tolist():
        photo, wanted = int(rows["image_id"][k]), actions[rows["action"][k]]
        if wanted is not None:
            ends = (rows["person_u16"][k], 0), (rows["object_u16"][k], int(rows["object"][k]))
            subject, other = (boxes.setdefault((photo, *box.tolist(), what), len(boxes) + 1) for box, what in ends)
            if subject != other:
                relations[photo, subject, other, names.index(wanted)] = None
    scale = SIDE / 65535
    made = {
        "images": [{"id": i, "width": SIDE, "height": SIDE} for i in sorted({photo for photo, *_ in boxes})],
        "categories": [{"id": place, "name": name} for place, name in COCO_PLACES.items()],
        "annotations": [
            {
                "id": number,
                "image_id": photo,
                "category_id": what,
                "bbox": [round(v * scale, 3) for v in (x1, y1, x2 - x1, y2 - y1)],
            }
            for (photo, x1, y1, x2, y2, what), number in boxes.items()
        ],
        "rel_categories": [{"id": k, "name": name} for k, name in enumerate(names)],
        "rel_annotations": [
            dict(zip(("image_id", "subject_id", "object_id", "predicate_id"), row, strict=True)) for row in relations
        ],
    }
    write_json(target, made)
    print(f"{len(made['images']):,} photos, {len(relations):,} relations -> {target}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--actions", type=Path, required=True)
    parser.add_argument("--model", default="vg150-photo")
    parser.add_argument("--every", type=int, default=1, help="every n-th photo only")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    rows = read_rows(options.rows)
    actions = [PREDICATES.get(name.split()[0]) for name in json.loads(options.actions.read_text())]
    photos = np.unique(rows["image_id"])[:: options.every]
    if options.write:
        write_rows(rows, actions, set(photos.tolist()), options.write)
        return
    model = load_model(options.model).labels_only()
    labels, predicates = model.vocabulary.object_index, model.vocabulary.predicates
    met, total = np.zeros(3), 0
    for photo in watched(photos.tolist(), "photos"):
        mine = np.flatnonzero(rows["image_id"] == photo)
        boxes: dict[tuple[int, ...], tuple[int, int]] = {}
        pairs: dict[tuple[int, int], set[str]] = defaultdict(set)
        for k in mine:
            name = COCO_PLACES[int(rows["object"][k])]
            known = [*may_be(name, tuple(labels)), STANDS_FOR.get(name, "")]
            label = next((labels[word] for word in known if word in labels), None)
            wanted = actions[rows["action"][k]]
            if label is None:
                continue
            ends = (("person_u16", labels["person"]), ("object_u16", label))
            place = [boxes.setdefault((*rows[key][k].tolist(), what), (len(boxes), what))[0] for key, what in ends]
            if wanted in predicates and place[0] != place[1]:
                pairs[place[0], place[1]].add(wanted)
        if not pairs:
            continue
        where = np.array([box[:4] for box in boxes]) / 65535 * SIDE
        graph = SceneGraph(where, [what for _, what in boxes.values()], model.vocabulary, width=SIDE, height=SIDE)
        _, said = model.distributions(SceneArrays.of([graph]), "predcls")
        order = {(int(i), int(j)): row for i, j, row in zip(*complete_pairs(np.array([len(boxes)])), said, strict=True)}
        for pair, words in pairs.items():
            best = [predicates[p] for p in np.argsort(-order[pair][1:], kind="stable")[:3]]
            met += [bool(words & set(best[:k])) for k in (1, 2, 3)]
            total += 1
    figures = {f"first {k}": round(100 * float(each) / max(total, 1), 1) for k, each in enumerate(met, 1)}
    print({"photos": len(photos), "pairs": total, **figures})
    if options.json:
        write_json(options.json, {"command": "benchmarks/actions.py", "pairs": total, **figures})


if __name__ == "__main__":
    main()
