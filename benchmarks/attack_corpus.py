"""Small good files of every kind that is read: what `attack.py` damages."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from scenegpi import SceneGraph
from scenegpi.data import Dataset, convert, open_dataset, sample_path, write_jsonl
from scenegpi.data.distributions import write_distributions
from scenegpi.words.vectors import WordVectors

LAYOUTS = Path(__file__).parents[1] / "tests" / "data" / "layouts.py"
"""One small scene in the layouts of public data sets."""
Case = tuple[str, Path]  # how it is read, and what one opens: a file, or a folder


def corpus(folder: Path, data: Path | None = None, images: int = 12) -> dict[str, Case]:
    """Name -> case: a few images (of `data`, or the sample) in every format of data sets, and the other kinds."""
    dataset = open_dataset(data)[:images] if data else open_dataset(sample_path())
    sets = {
        "jsonl": folder / "jsonl" / "x.jsonl",
        "coco": folder / "coco" / "x.json",
        "vg": folder / "vg",
        "jsonl-scored": folder / "jsonl-scored" / "x.jsonl",
        "coco-scored": folder / "coco-scored" / "x.json",
        "vg-scored": folder / "vg-scored",
    }
    scored = folder / "scored.jsonl"
    write_jsonl(scored, [_scored(graph, i) for i, graph in enumerate(dataset)])
    for name, target in sets.items():
        convert(open_dataset(scored) if name.endswith("scored") else dataset, target)
    sets |= {
        "vrd": _vrd(folder / "vrd", dataset),
        "coco-folder": _coco_folder(folder / "coco-folder", dataset),
        "open-images": _csv(folder / "open-images" / "x.csv", dataset),
        "coco-results": _results(folder / "coco-results" / "x.json", dataset),
        "yolo": _yolo(folder / "yolo", dataset),
        "parquet": _parquet(folder / "parquet" / "x.parquet", dataset),
    }
    layouts = runpy.run_path(str(LAYOUTS))["LAYOUTS"]
    sets |= {f"public {name}": write(folder / f"public {name}") for name, write in layouts.items()}
    found: dict[str, Case] = {name: ("data", path) for name, path in sets.items()}
    found |= {"evaluation": ("evaluation", _evaluation(folder / "evaluation" / "x.npz"))}
    found |= {"distributions": ("distributions", folder / "distributions" / "x.npz")}
    write_distributions(found["distributions"][1], _whole(dataset))
    found |= {name: ("words", path) for name, path in _words(folder).items()}
    found |= {name: ("names", path) for name, path in _names(folder).items()}
    return found | {name: ("photo", path) for name, path in _photos(folder).items()}


def _parquet(path: Path, dataset: Dataset) -> Path:
    import pyarrow
    from pyarrow import parquet

    path.parent.mkdir(parents=True)
    columns = {
        "boxes": [graph.boxes.tolist() for graph in dataset],
        "labels": [list(graph.names) for graph in dataset],
        "id": [str(graph.image_id) for graph in dataset],
    }
    parquet.write_table(pyarrow.table(columns), path)
    return path


def _scored(graph: SceneGraph, seed: int) -> SceneGraph:
    """The graph with scores and, for two images of three, distributions over a few pairs, in single precision."""
    rng = np.random.default_rng(seed)
    fields: dict[str, Any] = {"scores": rng.uniform(size=len(graph)).astype(np.float32)}
    fields["relation_scores"] = rng.uniform(size=len(graph.relations))
    if seed % 3:
        pairs = [(i, j) for i in range(min(len(graph), 3)) for j in range(min(len(graph), 3)) if i != j]
        fields["label_dist"] = rng.dirichlet(np.ones(len(graph.vocabulary.objects)), len(graph)).astype(np.float32)
        fields |= {
            "pairs": pairs,
            "pair_dist": rng.dirichlet(np.ones(1 + len(graph.vocabulary.predicates)), len(pairs)),
        }
    return graph.replace(**fields)


def _whole(dataset: Dataset) -> Iterable[SceneGraph]:
    return [_scored(graph, 1) for graph in dataset]


def _dump(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def _vrd(folder: Path, dataset: Dataset) -> Path:
    rows = {}
    for graph in dataset:
        ends = [
            {"category": label, "bbox": [int(y1), int(y2), int(x1), int(x2)]}
            for label, (x1, y1, x2, y2) in zip(graph.labels.tolist(), graph.boxes.tolist(), strict=True)
        ]
        rows[graph.file] = [
            {"subject": ends[s], "object": ends[o], "predicate": p} for s, o, p in graph.relations.tolist()
        ]
    _dump(folder / "annotations_train.json", rows)
    _dump(folder / "objects.json", dataset.vocabulary.objects)
    _dump(folder / "predicates.json", dataset.vocabulary.predicates)
    _dump(folder / "image_sizes.json", {g.file: {"width": g.width, "height": g.height} for g in dataset})
    return folder


def _coco_folder(folder: Path, dataset: Dataset) -> Path:
    convert(dataset, folder / "train.json")
    relations = {str(g.image_id): g.relations.tolist() for g in dataset}
    _dump(folder / "rel.json", {"train": relations, "rel_categories": dataset.vocabulary.predicates})
    return folder


def _csv(path: Path, dataset: Dataset) -> Path:
    lines = ["ImageID,LabelName1,LabelName2,XMin1,XMax1,YMin1,YMax1,XMin2,XMax2,YMin2,YMax2,RelationshipLabel"]
    for graph in dataset:
        unit = graph.boxes / ([graph.width, graph.height] * 2)
        for t in graph.triplets():
            boxes = [f"{unit[i][0]},{unit[i][2]},{unit[i][1]},{unit[i][3]}" for i in (t.subject_index, t.object_index)]
            lines.append(f"{graph.image_id},{t.subject},{t.object},{','.join(boxes)},{t.predicate}")
    _dump(path.parent / "class-descriptions.csv", "/m/01,Man\n/m/02,Horse\n")
    return _dump(path, "\n".join(lines))


def _results(path: Path, dataset: Dataset) -> Path:
    rows = [
        {"image_id": g.image_id, "category_id": label, "bbox": [x1, y1, x2 - x1, y2 - y1], "score": 0.5}
        for g in dataset
        for label, (x1, y1, x2, y2) in zip(g.labels.tolist(), g.boxes.tolist(), strict=True)
    ]
    return _dump(path, rows)


def _yolo(folder: Path, dataset: Dataset) -> Path:
    """With photos, whose sizes are looked up."""
    for g in dataset:
        rows = [
            f"{label} {(x1 + x2) / 2 / g.width} {(y1 + y2) / 2 / g.height} {(x2 - x1) / g.width} {(y2 - y1) / g.height}"
            for label, (x1, y1, x2, y2) in zip(g.labels.tolist(), g.boxes.tolist(), strict=True)
        ]
        _dump(folder / "labels" / f"{g.image_id}.txt", "\n".join(rows))
        (folder / "images").mkdir(exist_ok=True)
        _picture().save(folder / "images" / f"{g.image_id}.jpg", exif=_exif(6))
    _dump(folder / "classes.txt", "\n".join(dataset.vocabulary.objects))
    return folder


def _evaluation(path: Path) -> Path:
    """Two images of three boxes; three classes, two predicates."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 50, (6, 2))
    boxes = np.concatenate([low, low + rng.uniform(1, 50, (6, 2))], axis=1)
    pairs = np.array([(i, j) for _ in range(2) for i in range(3) for j in range(3) if i != j])
    path.parent.mkdir(parents=True)
    np.savez(
        path,
        gt_boxes=boxes,
        gt_classes=np.array([1, 2, 3] * 2),
        gt_rels=np.array([[0, 1, 1], [1, 2, 2], [2, 0, 1]]),
        pred_boxes=boxes + rng.uniform(-1, 1, (6, 1)),
        pred_classes=np.array([1, 2, 3] * 2),
        obj_scores=rng.uniform(size=6).astype(np.float32),
        rel_pairs=pairs,
        rel_scores=rng.dirichlet(np.ones(3), len(pairs)).astype(np.float32),
        gt_box_ptr=np.array([0, 3, 6]),
        gt_rel_ptr=np.array([0, 2, 3]),
        pred_box_ptr=np.array([0, 3, 6]),
        rel_ptr=np.array([0, 6, 12]),
        zeroshot=np.array([[1, 2, 1]]),
    )
    return path


def _words(folder: Path) -> dict[str, Path]:
    rng = np.random.default_rng(0)
    words = ["man", "horse", "dog", "on", "riding"]
    vectors = rng.normal(size=(5, 4))
    text = "\n".join(f"{word} " + " ".join(f"{v:.4f}" for v in row) for word, row in zip(words, vectors, strict=True))
    own = folder / "words-own" / "x.safetensors"
    own.parent.mkdir(parents=True)
    WordVectors(words, vectors, "made up").save(own)
    return {"words-text": _dump(folder / "words-text" / "x.txt", text), "words-own": own}


def _names(folder: Path) -> dict[str, Path]:
    return {
        "names-text": _dump(folder / "names-text" / "classes.txt", "man\nhorse\ndog\n"),
        "names-yaml": _dump(folder / "names-yaml" / "data.yaml", "nc: 3\nnames: ['man', \"horse\", dog]\n"),
        "names-json": _dump(folder / "names-json" / "x.json", {"categories": [{"id": 1, "name": "man"}]}),
    }


def _picture(mode: str = "RGB", side: int = 48) -> Image.Image:
    x, y = np.meshgrid(np.linspace(0, 255, side), np.linspace(0, 255, side * 3 // 4))
    return Image.fromarray(np.stack([x, y, 0 * x + 90], 2).astype(np.uint8)).convert(mode)


def _exif(turn: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = turn
    exif[0x010E] = "a note"
    return exif


def _photos(folder: Path) -> dict[str, Path]:
    kinds: dict[str, tuple[Image.Image, str, dict[str, Any]]] = {
        "jpeg": (_picture(), "jpg", {"exif": _exif(6)}),
        "jpeg-progressive": (_picture(), "jpg", {"progressive": True}),
        "png": (_picture(), "png", {"exif": _exif(3)}),
        "png-grey-alpha": (_picture("LA"), "png", {}),
        "png-palette": (_picture().quantize(16), "png", {}),
        "png-16-bit": (Image.fromarray(np.asarray(_picture("L")).astype(np.uint16) * 200), "png", {}),
        "webp": (_picture(), "webp", {"exif": _exif(8)}),
        "webp-lossless": (_picture("RGBA"), "webp", {"lossless": True}),
        "gif": (_picture().quantize(16), "gif", {"comment": "a note"}),
        "bmp": (_picture(), "bmp", {}),
        "tiff": (_picture(), "tif", {"exif": _exif(5)}),
        "tiff-deflate": (_picture(), "tif", {"compression": "tiff_deflate"}),
        "tiff-lzw-cmyk": (_picture("CMYK"), "tif", {"compression": "tiff_lzw"}),
    }
    found = {}
    for name, (image, suffix, options) in kinds.items():
        found[name] = folder / name / f"x.{suffix}"
        found[name].parent.mkdir(parents=True)
        image.save(found[name], **options)
    return found
