"""Labels and relations of VRD's official test photos, by models that saw training photos only.

    python benchmarks/vrd_test.py --data VRD --train-photos DIR --photos DIR --runs RUNS [--rows NAME ...] \
        [--seeds 0 1 2] [--skip FILE ...] [--json FILE]

trains by the recipe `vrd-photo` what RUNS does not hold yet; the row "shipped" is the packaged model. --skip names
files that map photos to the ids that they have elsewhere: those whose <id>.jpg is in --skip-photos, on which the photo
network was trained, are left out. SGCls and PredCls; 95% intervals by bootstrap over images; gains are paired with the
baseline of the seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rows import BASELINE, preset_config, trained
from scenegpi.data import open_dataset
from scenegpi.files import write_json
from scenegpi.models import SceneModel, load_model
from vg150_photos import SHIPPED, photographed, show, table

RECIPE = "vrd-photo"


def known_photos(files: Iterable[Path], trained: Path | None) -> set[str]:
    """Names of photos that `files` map to ids of another data set, where `trained`, the folder of the photos that the
    network was trained on, holds <id>.jpg of any of them; without it all of them."""
    return {
        name
        for file in files
        for name, ids in json.loads(file.read_text()).items()
        if trained is None or any((trained / f"{i}.jpg").is_file() for i in ids)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--train-photos", type=Path, required=True)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--model", default=RECIPE, help="the row 'shipped'")
    parser.add_argument("--rows", nargs="+", default=[BASELINE])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--skip", type=Path, nargs="*", default=[])
    parser.add_argument("--skip-photos", type=Path, help="folder of the photos that the network was trained on")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    systems: dict[str, list[SceneModel]] = {SHIPPED: [load_model(options.model)]}
    where = {"data": {"path": str(options.data), "photos": str(options.train_photos)}}
    for seed in options.seeds if options.runs is not None else []:
        for name in [BASELINE, *(row for row in options.rows if row != BASELINE)]:
            folder = options.runs / f"seed{seed}"
            config = preset_config(RECIPE, name, {**where, "seed": seed}, folder / BASELINE)
            systems.setdefault(name, []).append(load_model(trained(config, folder / name)))
    skipped = known_photos(options.skip, options.skip_photos)
    test = open_dataset(options.data, "test", images=options.photos)
    images = [graph for graph in photographed(systems[SHIPPED][0], test) if graph.file not in skipped]
    train = open_dataset(options.data, "train")
    found: dict[str, Any] = table(images, train, systems, "VRD test photos")
    show(found, "VRD test photos")
    if options.json:
        write_json(options.json, {"command": "benchmarks/vrd_test.py", "seeds": options.seeds, **found})


if __name__ == "__main__":
    main()
