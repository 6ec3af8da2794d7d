r"""At which size are boxes named best? The label predictor of a photo model on validation photos, without retraining.

    python benchmarks/photo_sizes.py --data VG150 --photos DIR [--model vg150-photo] [--sizes 256 288 320 352 384] \
        [--validation 1291] [--limit N]

Top-1 in percent of the annotated boxes; alone, and as the mean of the photo and its mirror image. Photos are spread
evenly over the validation images that have one.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from finder import photos_of
from scenegpi.data import open_dataset
from scenegpi.models import load_model
from scenegpi.progress import watched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--model", default="vg150-photo")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 288, 320, 352, 384])
    parser.add_argument("--validation", type=int, default=1291)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    vision = load_model(options.model).vision
    assert vision is not None
    dataset = open_dataset(options.data, "val", images=options.photos, validation=options.validation)
    data = photos_of(dataset, None)
    if options.limit is not None and options.limit < len(data):
        data = [data[i] for i in np.arange(options.limit) * len(data) // options.limit]
    forms = [(size, mirror) for size in options.sizes for mirror in (False, True)]
    right, boxes = dict.fromkeys(forms, 0), 0
    first = vision.config
    for path, graph in watched(data, "photos"):
        boxes += len(graph)
        for size, mirror in forms:
            vision.config = replace(first, features=replace(first.features, photo_size=size, mirror=mirror))
            found = vision.label_dist(path, graph).argmax(axis=1)
            right[size, mirror] += int((found == graph.labels).sum())
    print(f"{len(data)} photos, {boxes:,} boxes\n\n| pixels | photo | and mirror image |\n|---|---:|---:|")
    for size in options.sizes:
        print(
            f"| {size} | " + " | ".join(f"{100 * right[size, mirror] / boxes:.1f}" for mirror in (False, True)) + " |"
        )


if __name__ == "__main__":
    main()
