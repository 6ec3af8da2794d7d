"""COCO boxes in one npz -> a COCO file that `scenegpi train` takes for pretraining, less those of test photos.

    python tools/coco_boxes.py --boxes train2017_boxes.npz --exclude exclude_ids.json --out coco.json

The npz holds `image_id` and `label` (0 to 79, COCO's usual order) per box, and `cxcywh_u16`: centre and size of the box
in 65,535ths of the frame. Sizes of the photos are not in it: boxes are given in a frame of `--side` pixels, which is
what photos that were stretched to a square have. `--aside N FILE` writes N photos, to be tested on, to another file,
drawn with seed 1 from those that `--same` (image ids elsewhere -> here) does not name.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.files import write_json


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boxes", type=Path, required=True)
    parser.add_argument("--exclude", type=Path, required=True, help="JSON list of image ids")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=0, help="images, drawn at random with seed 0; 0 for all")
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--aside", nargs=2, metavar=("N", "FILE"), help="photos for a file of their own")
    parser.add_argument("--same", type=Path, help="JSON: ids of another data set -> ids of photos that both have")
    args = parser.parse_args()
    with np.load(args.boxes) as file:
        ids, labels, boxes = file["image_id"], file["label"], file["cxcywh_u16"] / 65535 * args.side
    kept = np.setdiff1d(np.unique(ids), np.array(json.loads(args.exclude.read_text()), dtype=ids.dtype))
    if args.aside:
        both = [] if args.same is None else list(json.loads(args.same.read_text()).values())
        free = np.setdiff1d(kept, np.array(both, dtype=ids.dtype))
        aside = np.sort(np.random.default_rng(1).permutation(free)[: int(args.aside[0])])
        kept = np.setdiff1d(kept, aside)
        write(Path(args.aside[1]), aside, ids, labels, boxes, args.side)
    if args.limit:
        kept = np.sort(np.random.default_rng(0).permutation(kept)[: args.limit])
    write(args.out, kept, ids, labels, boxes, args.side)


def write(out: Path, kept: np.ndarray, ids: np.ndarray, labels: np.ndarray, boxes: np.ndarray, side: int) -> None:
    """A COCO file of the images `kept`."""
    rows = np.flatnonzero(np.isin(ids, kept))
    corner = boxes[:, :2] - boxes[:, 2:] / 2
    made = {
        "images": [{"id": int(i), "file_name": f"{int(i):012d}.jpg", "width": side, "height": side} for i in kept],
        "categories": [{"id": place, "name": name} for place, name in COCO_PLACES.items()],
        "annotations": [
            {
                "id": int(k) + 1,
                "image_id": int(ids[k]),
                "category_id": int(labels[k]),
                "bbox": [round(float(x), 3) for x in (*corner[k], *boxes[k, 2:])],
            }
            for k in rows
        ],
    }
    write_json(out, made)
    print(f"{len(kept):,} images, {len(rows):,} boxes -> {out}")


if __name__ == "__main__":
    main()
