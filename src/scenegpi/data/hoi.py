"""Human-object interactions as relations: HICO-DET and V-COCO in the JSON layout that HOI detectors share.

[{"file_name", "annotations": [{"bbox": [x1, y1, x2, y2], "category_id"}],
  "hoi_annotation": [{"subject_id", "object_id", "category_id"}]}]

Objects are numbered as in COCO (1..90). Verbs are HICO-DET's 117, from 1, or V-COCO's 29, from 0: the file's name tells
which it is (trainval_hico.json, test_vcoco.json). An interaction without an object (object_id -1: "smile") is an
attribute of the person.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scenegpi.data.coco_names import COCO_IDS
from scenegpi.data.graphs import Graphs
from scenegpi.data.named import Image, about, corners, entries, key_of, list_rows, named_graphs, number, split_of
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.vocabulary import Vocabulary

HICO = """
adjust, assemble, block, blow, board, break, brush with, buy, carry, catch, chase, check, clean, control, cook, cut,
cut with, direct, drag, dribble, drink with, drive, dry, eat, eat at, exit, feed, fill, flip, flush, fly, greet, grind,
groom, herd, hit, hold, hop on, hose, hug, hunt, inspect, install, jump, kick, kiss, lasso, launch, lick, lie on, lift,
light, load, lose, make, milk, move, no interaction, open, operate, pack, paint, park, pay, peel, pet, pick, pick up,
point, pour, pull, push, race, read, release, repair, ride, row, run, sail, scratch, serve, set, shear, sign, sip,
sit at, sit on, slide, smell, spin, squeeze, stab, stand on, stand under, stick, stir, stop at, straddle, swing, tag,
talk on, teach, text on, throw, tie, toast, train, turn, type on, walk, wash, watch, wave, wear, wield, zip
"""
VCOCO = """
hold, stand, sit on, ride, walk, look at, hit with, hit, eat, eat with, jump on, lay on, talk on phone, carry, throw,
catch, cut with, cut, run, work on computer, ski on, surf on, skateboard on, smile, drink with, kick, point at, read,
snowboard on
"""
VERBS = {
    name: tuple(verb.strip() for verb in text.replace("\n", " ").split(","))
    for name, text in (("hico", HICO), ("vcoco", VCOCO))
}


def kind_of(path: Path) -> str | None:
    """hico or vcoco, whichever the file's name contains, or None."""
    name = path.stem.lower().replace("-", "")
    return next((kind for kind in VERBS if kind in name), None)


def read_hoi(path: Path, report: Report) -> Graphs:
    """One file."""
    kind = kind_of(path)
    if kind is None:
        raise DataError(path, "the file's name must contain hico or vcoco, to tell whose verbs it uses")
    vocabulary = Vocabulary(tuple(COCO_IDS.values()), VERBS[kind], kind)
    split = split_of(path)
    fields = partial(_fields, verbs=VERBS[kind], first=1 if kind == "hico" else 0)

    def images() -> Iterator[Image]:
        return (Image(key_of(row, "file_name"), row, split) for row in list_rows(path))

    return named_graphs(path, report, images, fields, vocabulary)


def _fields(image: Image, verbs: tuple[str, ...], first: int) -> dict[str, Any]:
    if not isinstance(image.key, str):
        raise GraphError("file_name: expected a name")
    objects = entries(image.row.get("annotations"), "annotations")
    labels = []
    for i, each in enumerate(objects):
        category = each.get("category_id")
        name = COCO_IDS.get(category) if isinstance(category, int) else None
        if name is None:
            raise GraphError(f"annotations[{i}].category_id: {category!r:.60} is not a COCO category number")
        labels.append(name)
    relations, attributes = [], [[] for _ in objects]  # type: tuple[list[Any], list[list[str]]]
    for i, each in enumerate(entries(image.row.get("hoi_annotation", []), "hoi_annotation")):
        field = f"hoi_annotation[{i}]"
        subject = number(each.get("subject_id"), len(objects), f"{field}.subject_id")
        verb = number(each.get("category_id"), len(verbs), f"{field}.category_id", first)
        if each.get("object_id") == -1:
            attributes[subject].append(verbs[verb])
        else:
            other = number(each.get("object_id"), len(objects), f"{field}.object_id")
            relations.append((subject, other, verbs[verb]))
    return {
        "boxes": [corners(each.get("bbox"), f"annotations[{i}].bbox", False) for i, each in enumerate(objects)],
        "labels": labels,
        "attributes": attributes,
        "relations": relations,
        **about(image.key, image.key, image.row),
    }
