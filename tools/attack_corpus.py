"""Small good files of every kind that is read: what `attack.py` damages."""

from __future__ import annotations

import json
import runpy
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
    names = ("jsonl/x.jsonl", "coco/x.json", "vg", "jsonl-scored/x.jsonl", "coco-scored/x.json", "vg-scored")
    write_jsonl(folder / "scored.jsonl", [_scored(graph, i) for i, graph in enumerate(dataset)])
    for name in names:
        convert(open_dataset(folder / "scored.jsonl") if "scored" in name else dataset, folder / name)
    makers = (_vrd, _coco_folder, _open_images, _coco_results, _yolo, _parquet)
    sets = [*(folder / name for name in names), *(make(folder, dataset) for make in makers)]
    layouts = runpy.run_path(str(LAYOUTS))["LAYOUTS"]
    found = {path.relative_to(folder).parts[0]: ("data", path) for path in sets}
    found |= {f"public {name}": ("data", write(folder / f"public {name}")) for name, write in layouts.items()}
    found["evaluation"] = "evaluation", _evaluation(folder)
    found["distributions"] = "distributions", folder / "distributions" / "x.npz"
    write_distributions(found["distributions"][1], [_scored(graph, 1) for graph in dataset])
    found["words-text"] = "words", _dump(folder / "words-text" / "x.txt", "man 1 0.5\nhorse 0 1\ndog -1 2e-1\n")
    found["words-own"] = "words", folder / "words-own" / "x.safetensors"
    found["words-own"][1].parent.mkdir()
    WordVectors(["man", "on"], np.random.default_rng(0).normal(size=(2, 4)), "made up").save(found["words-own"][1])
    found["names-text"] = "names", _dump(folder / "names-text" / "classes.txt", "man\nhorse\ndog\n")
    found["names-yaml"] = "names", _dump(folder / "names-yaml" / "x.yaml", "nc: 3\nnames: ['man', \"horse\", dog]\n")
    found["names-json"] = "names", _dump(folder / "names-json" / "x.json", {"categories": [{"id": 1, "name": "man"}]})
    found["toml"] = "toml", _dump(folder / "toml" / "x.toml", "[model]\npreset = 'baseline'\n[fit]\nepochs = 2\n")
    found["store"] = "store", _store(folder / "store", dataset)
    found["video"] = "video", video(folder / "video" / "x.avi", [(64, 48)] * 3)
    return found | {name: ("photo", path) for name, path in _photos(folder).items()}


def _dump(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def _scored(graph: SceneGraph, seed: int) -> SceneGraph:
    """The graph with scores and, for two images of three, distributions over a few pairs, in single precision."""
    rng = np.random.default_rng(seed)
    fields: dict[str, Any] = {"scores": rng.uniform(size=len(graph)).astype(np.float32)}
    fields["relation_scores"] = rng.uniform(size=len(graph.relations))
    if seed % 3:
        few, words = range(min(len(graph), 3)), graph.vocabulary
        pairs = [(i, j) for i in few for j in few if i != j]
        fields["label_dist"] = rng.dirichlet(np.ones(len(words.objects)), len(graph)).astype(np.float32)
        fields |= {"pairs": pairs, "pair_dist": rng.dirichlet(np.ones(1 + len(words.predicates)), len(pairs))}
    return graph.replace(**fields)


def _objects(graph: SceneGraph) -> list[tuple[int, list[float]]]:
    return list(zip(graph.labels.tolist(), graph.boxes.tolist(), strict=True))


def _vrd(root: Path, dataset: Dataset) -> Path:
    folder, rows = root / "vrd", {}
    for graph in dataset:
        ends = [{"category": k, "bbox": [*map(int, (y1, y2, x1, x2))]} for k, (x1, y1, x2, y2) in _objects(graph)]
        triples = graph.relations.tolist()
        rows[graph.file] = [{"subject": ends[s], "object": ends[o], "predicate": p} for s, o, p in triples]
    _dump(folder / "annotations_train.json", rows)
    _dump(folder / "objects.json", dataset.vocabulary.objects)
    _dump(folder / "predicates.json", dataset.vocabulary.predicates)
    _dump(folder / "image_sizes.json", {g.file: {"width": g.width, "height": g.height} for g in dataset})
    return folder


def _coco_folder(root: Path, dataset: Dataset) -> Path:
    convert(dataset, root / "coco-folder" / "train.json")
    relations = {str(g.image_id): g.relations.tolist() for g in dataset}
    rows = {"train": relations, "rel_categories": dataset.vocabulary.predicates}
    return _dump(root / "coco-folder" / "rel.json", rows).parent


def _open_images(root: Path, dataset: Dataset) -> Path:
    lines = ["ImageID,LabelName1,LabelName2,XMin1,XMax1,YMin1,YMax1,XMin2,XMax2,YMin2,YMax2,RelationshipLabel"]
    for graph in dataset:
        unit = (graph.boxes / ([graph.width, graph.height] * 2))[:, [0, 2, 1, 3]].tolist()
        for t in graph.triplets():
            boxes = ",".join(map(str, unit[t.subject_index] + unit[t.object_index]))
            lines.append(f"{graph.image_id},{t.subject},{t.object},{boxes},{t.predicate}")
    _dump(root / "open-images" / "class-descriptions.csv", "/m/01,Man\n/m/02,Horse\n")
    return _dump(root / "open-images" / "x.csv", "\n".join(lines))


def _coco_results(root: Path, dataset: Dataset) -> Path:
    rows = [
        {"image_id": g.image_id, "category_id": k, "bbox": [x1, y1, x2 - x1, y2 - y1], "score": 0.5}
        for g in dataset
        for k, (x1, y1, x2, y2) in _objects(g)
    ]
    return _dump(root / "coco-results" / "x.json", rows)


def _yolo(root: Path, dataset: Dataset) -> Path:
    """With photos, whose sizes are looked up."""
    (root / "yolo" / "images").mkdir(parents=True)
    for g in dataset:
        unit = [(k, np.array(box) / ([g.width, g.height] * 2)) for k, box in _objects(g)]
        rows = [f"{k} {(b[0] + b[2]) / 2} {(b[1] + b[3]) / 2} {b[2] - b[0]} {b[3] - b[1]}" for k, b in unit]
        _dump(root / "yolo" / "labels" / f"{g.image_id}.txt", "\n".join(rows))
        picture().save(root / "yolo" / "images" / f"{g.image_id}.jpg", exif=_exif(6))
    return _dump(root / "yolo" / "classes.txt", "\n".join(dataset.vocabulary.objects)).parent


def _parquet(root: Path, dataset: Dataset) -> Path:
    import pyarrow
    from pyarrow import parquet

    path = root / "parquet" / "x.parquet"
    path.parent.mkdir(parents=True)
    rows = [{"boxes": g.boxes.tolist(), "labels": list(g.names), "id": str(g.image_id)} for g in dataset]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def _store(folder: Path, dataset: Dataset) -> Path:
    from scenegpi.store import Store

    Store(folder).add(dataset)
    return folder


def _evaluation(root: Path) -> Path:
    """Two images of three boxes; three classes, two predicates."""
    rng, path = np.random.default_rng(0), root / "evaluation" / "x.npz"
    low = rng.uniform(0, 50, (6, 2))
    boxes = np.concatenate([low, low + rng.uniform(1, 50, (6, 2))], axis=1)
    pairs = np.array([(i, j) for _ in range(2) for i in range(3) for j in range(3) if i != j])
    arrays: dict[str, Any] = {"gt_boxes": boxes, "pred_boxes": boxes + rng.uniform(-1, 1, (6, 1)), "rel_pairs": pairs}
    arrays |= dict.fromkeys(("gt_classes", "pred_classes"), np.array([1, 2, 3] * 2))
    arrays |= dict.fromkeys(("gt_box_ptr", "pred_box_ptr"), np.array([0, 3, 6]))
    arrays |= {"gt_rels": [[0, 1, 1], [1, 2, 2], [2, 0, 1]], "gt_rel_ptr": [0, 2, 3], "rel_ptr": [0, 6, 12]}
    arrays |= {"obj_scores": rng.uniform(size=6), "rel_scores": rng.dirichlet(np.ones(3), 12), "zeroshot": [[1, 2, 1]]}
    path.parent.mkdir(parents=True)
    np.savez(path, **arrays)
    return path


def video(path: Path, sizes: list[tuple[int, int]]) -> Path:
    """A video of JPEG frames of these sizes; what it says of itself is the first."""
    import io

    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", format="avi") as container:
        stream = container.add_stream("mjpeg", rate=10)
        stream.width, stream.height = sizes[0]
        stream.pix_fmt = "yuvj420p"
        for k, size in enumerate(sizes):
            data = io.BytesIO()
            Image.new("RGB", size, (90, 40 * k % 255, 0)).save(data, "JPEG", quality=5)
            packet = av.Packet(data.getvalue())
            packet.pts = packet.dts = k
            packet.stream = stream
            container.mux(packet)
    return path


def picture(mode: str = "RGB", side: int = 48) -> Image.Image:
    x, y = np.meshgrid(np.linspace(0, 255, side), np.linspace(0, 255, side * 3 // 4))
    return Image.fromarray(np.stack([x, y, 0 * x + 90], 2).astype(np.uint8)).convert(mode)


def _exif(turn: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = turn, "a note"
    return exif


def _photos(folder: Path) -> dict[str, Path]:
    wide = Image.fromarray(np.asarray(picture("L")).astype(np.uint16) * 200)
    kinds: dict[str, tuple[Image.Image, str, dict[str, Any]]] = {
        "jpeg": (picture(), "jpg", {"exif": _exif(6)}),
        "jpeg-progressive": (picture(), "jpg", {"progressive": True}),
        "png": (picture(), "png", {"exif": _exif(3)}),
        "png-grey-alpha": (picture("LA"), "png", {}),
        "png-palette": (picture().quantize(16), "png", {}),
        "png-16-bit": (wide, "png", {}),
        "webp": (picture(), "webp", {"exif": _exif(8)}),
        "webp-lossless": (picture("RGBA"), "webp", {"lossless": True}),
        "bmp": (picture(), "bmp", {}),
    }
    found = {name: folder / name / f"x.{suffix}" for name, (_, suffix, _) in kinds.items()}
    for name, (image, _, options) in kinds.items():
        found[name].parent.mkdir(parents=True)
        image.save(found[name], **options)
    return found
