"""What context is worth on Visual Genome photos, by the quality of the labels: a shipped model and its first stage.

    python benchmarks/vg150_photos.py --data VG150 --photos DIR [--all-boxes ALL --all-photos DIR] [--model NAME] \
        [--every N] [--blur 0 1 2] [--json FILE]

Both read the same label distributions off the photos; the first stage looks at each box and each pair by itself. SGCls
and PredCls, constrained and not, on (a) the test images with a photo and (b) images with all their boxes and a photo;
95% intervals by bootstrap over images, gains are paired. `--blur` blurs the photos first.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

from PIL import Image, ImageFilter

from finder import photos_of
from rows import (
    BASELINE,
    FIGURES,
    REPLICATES,
    Row,
    average,
    count_labels,
    freq_model,
    markdown,
    plain_labels,
    plain_rows,
    predictions,
    score,
)
from scenegpi.data import Dataset, open_dataset
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState, ZeroShot
from scenegpi.models import SceneModel, load_model
from scenegpi.paper.figures.compare import first_stage
from scenegpi.progress import watched
from scenegpi.training import find_recipe, read_config
from scenegpi.vision.photos import open_photo

RECIPE = "vg150-photo"
TASKS = ("sgcls", "predcls")
SHOWN = ["R@20", "R@50", "R@100", "ngR@20", "ngR@50", "ngR@100", "mR@50", "mR@100", "zR@100"]
SHIPPED, HEAD, FREQ = "shipped", "label predictor alone", "FREQ"


def photographed(model: SceneModel, data: Dataset, blur: float = 0, every: int = 1) -> list[SceneGraph]:
    """The images that have a photo and a relation, with the label distributions of the model's label predictor.

    A blur is the standard deviation of a Gaussian in pixels of the photo.
    """
    assert model.vision is not None
    out = []
    for path, graph in watched(photos_of(data, every), "photos"):
        photo = Image.fromarray(open_photo(path)).filter(ImageFilter.GaussianBlur(blur)) if blur else path
        out.append(model.vision.add_labels(photo, graph))
    return out


def table(images: list[SceneGraph], train: Dataset, systems: dict[str, list[SceneModel]], title: str) -> dict[str, Any]:
    """All systems on one list of images, for JSON."""
    zero_shot, freq = ZeroShot.from_training(train), freq_model(train)
    out: dict[str, Any] = {"images": len(images), "boxes": sum(map(len, images))}
    heads = count_labels(images, images)
    counts = {HEAD: heads}
    for task in TASKS:
        plan = Plan(Protocol(task, data=title), images[0].vocabulary, zero_shot, bootstrap=REPLICATES)  # type: ignore[arg-type]
        rows = {FREQ: score(predictions(freq, images, task), images, plan)}
        for name, models in systems.items():
            print(f"scoring {name} on {title}, {task}", flush=True)
            found = [list(predictions(model, images, task)) for model in models]
            results = [RecallState(plan).update(each, images).result() for each in found]
            rows[name] = Row(average(results), results)
            if task == "sgcls":
                counts[name] = count_labels(found[0], images)
        out[task] = plain_rows(rows, FIGURES, ["R@50", "R@100", *(["pair-R@5"] if task == "predcls" else [])])
    out["labels"] = {name: plain_labels(each, heads if name != HEAD else None) for name, each in counts.items()}
    return out


def show(found: dict[str, Any], title: str) -> None:
    """Prints what `table` gives."""
    print(f"\n{title}: {found['images']:,} images, {found['boxes']:,} boxes, in percent\n")
    print(markdown(found["labels"], ["top-1", "top-5"], "top-1", ["top-1"]))
    for task in TASKS:
        print(f"\n{task}\n\n{markdown(found[task], SHOWN, 'R@50', ['R@50', 'R@100'])}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--all-boxes", type=Path)
    parser.add_argument("--all-photos", type=Path)
    parser.add_argument("--model", default=RECIPE)
    parser.add_argument("--every", type=int, default=1, help="every n-th test image only")
    parser.add_argument("--blur", type=float, nargs="+", default=[0.0], help="of the photos, in pixels")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    shipped = load_model(options.model).labels_only()
    systems = {SHIPPED: [shipped], BASELINE: [first_stage(shipped)]}
    aside = read_config(find_recipe(RECIPE), {}).data.validation
    train = open_dataset(options.data, "train", validation=aside or 0)
    sets = [("(a) test photos", open_dataset(options.data, "test", images=options.photos))]
    if options.all_boxes is not None:
        sets.append(("(b) photos with all boxes", open_dataset(options.all_boxes, images=options.all_photos)))
    report: dict[str, Any] = {"command": "benchmarks/vg150_photos.py", "data": {}}
    for (title, data), blur in product(sets, options.blur):
        title += f", blurred by {blur:g}" if blur else ""
        images = photographed(shipped, data, blur, options.every)
        found = report["data"][title] = table(images, train, systems, title)
        show(found, title)
    if options.json:
        write_json(options.json, report)


if __name__ == "__main__":
    main()
