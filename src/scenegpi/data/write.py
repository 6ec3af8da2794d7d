"""Graphs -> Visual Genome's three files, or one COCO file with relations (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from scenegpi.data.graphs import Graphs
from scenegpi.data.jsonl import SPLIT_NAMES, dump, write_rows
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import whole_file, whole_folder
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import plain_attributes
from scenegpi.vocabulary import Vocabulary


def write_visual_genome(
    target: Path, graphs: Iterable[SceneGraph], splits: Iterable[int], vocabulary: Vocabulary, overwrite: bool = False
) -> int:
    """A folder with VG-SGG.h5, VG-SGG-dicts.json, image_data.json; returns the number of images."""
    found = Graphs(vocabulary, Report(str(target)))
    for graph, split in zip(graphs, splits, strict=False):
        if graph.width is None or graph.height is None:
            raise DataError(target, f"image {graph.image_id}: the Visual Genome layout needs width and height")
        if graph.image_id is None:
            raise DataError(target, f"image {graph.file}: the Visual Genome layout needs an image id")
        try:
            found.append(graph, split)
        except GraphError as error:
            raise DataError(target, str(error)) from None
    images = [
        {"image_id": graph.image_id, "width": graph.width, "height": graph.height}
        | ({} if graph.file == f"{graph.image_id}.jpg" else {"file_name": graph.file})
        for graph in found.graphs
    ]
    arrays = _arrays(found)
    with whole_folder(target, overwrite) as part:
        (part / "VG-SGG.h5").write_bytes(_h5(arrays))
        (part / "VG-SGG-dicts.json").write_text(dump(_dicts(vocabulary, arrays)), encoding="utf-8")
        (part / "image_data.json").write_text(dump(images), encoding="utf-8")
    return len(found)


def _arrays(found: Graphs) -> dict[str, NDArray[Any]]:
    """The datasets of the h5 file."""
    graphs = found.graphs
    counts = dict(zip(("box", "rel"), found.counts(), strict=True))
    boxes = _joined(graphs, "boxes")
    side = np.repeat([float(max(graph.width or 0, graph.height or 0)) for graph in graphs], counts["box"])[:, None]
    boxes_1024, exact = _centred(boxes, side)
    relations = _joined(graphs, "relations")
    first_box = np.repeat(np.cumsum(counts["box"]) - counts["box"], counts["rel"])
    arrays: dict[str, NDArray[Any]] = {
        "labels": _joined(graphs, "labels")[:, None].astype(np.int64) + 1,
        "boxes_1024": boxes_1024,
        "boxes_512": np.round(boxes_1024 / 2).astype(np.int32) if exact else boxes_1024 / 2,
        "predicates": relations[:, 2:].astype(np.int64) + 1,
        "relationships": (relations[:, :2] + first_box[:, None]).astype(np.int32),
        "split": found.split_codes().astype(np.int32),
    }
    for kind, count in counts.items():
        end = np.cumsum(count)
        arrays[f"img_to_first_{kind}"] = np.where(count == 0, -1, end - count).astype(np.int32)
        arrays[f"img_to_last_{kind}"] = np.where(count == 0, -1, end - 1).astype(np.int32)
    if not exact:
        arrays["boxes_pixel"] = boxes
    return arrays


def _joined(graphs: list[SceneGraph], field: str) -> NDArray[Any]:
    return np.concatenate([getattr(graph, field) for graph in graphs])


def _h5(arrays: dict[str, NDArray[Any]]) -> bytes:
    """The h5 file as bytes: made in memory, so that a full disk can only hit the one write that follows."""
    memory = BytesIO()
    with h5py.File(memory, "w") as file:
        for name, value in arrays.items():
            compression = {"compression": "gzip", "compression_opts": 1} if value.size else {}
            file.create_dataset(name, data=value, **compression)
    return memory.getvalue()


def _centred(boxes: NDArray[np.float64], side: NDArray[np.float64]) -> tuple[NDArray[Any], bool]:
    """(B, 4) xc, yc, w, h with the longer side scaled to 1024: whole numbers if they give the boxes back exactly."""
    size = (boxes[:, 2:] - boxes[:, :2]) * 1024 / side
    centre = (boxes[:, :2] + boxes[:, 2:]) / 2 * 1024 / side
    centred = np.concatenate([centre, size], axis=1)
    whole = np.round(centred)
    if np.abs(whole).max(initial=0) < 2**31:
        half = whole[:, 2:] / 2
        back = np.concatenate([whole[:, :2] - half, whole[:, :2] + half], axis=1) * (side / 1024)
        if np.array_equal(back, boxes):
            return whole.astype(np.int32), True
    return centred, False


def _dicts(vocabulary: Vocabulary, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": vocabulary.name}
    for kind, names, counted in (
        ("label", vocabulary.objects, "object"),
        ("predicate", vocabulary.predicates, "predicate"),
    ):
        counts = np.bincount(arrays[f"{kind}s"].ravel(), minlength=1 + len(names)).tolist()
        found[f"{kind}_to_idx"] = {name: i for i, name in enumerate(names, 1)}
        found[f"idx_to_{kind}"] = {str(i): name for i, name in enumerate(names, 1)}
        found[f"{counted}_count"] = dict(zip(names, counts[1:], strict=True))
    return found


def write_coco(
    target: Path, graphs: Iterable[SceneGraph], splits: Iterable[int], vocabulary: Vocabulary, overwrite: bool = True
) -> int:
    """One COCO JSON file with `rel_annotations` and `rel_categories`; returns the number of images."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    relations: list[dict[str, Any]] = []
    for number, (graph, split) in enumerate(zip(graphs, splits, strict=False)):
        if graph.vocabulary != vocabulary:
            raise DataError(target, f"image {graph.image_id}: its vocabulary differs from that of the images before it")
        image_id = graph.image_id if graph.image_id is not None else f"image {number}"
        about = {"id": image_id, "file_name": graph.file, "width": graph.width, "height": graph.height}
        about["split"] = SPLIT_NAMES.get(split)
        images.append({key: value for key, value in about.items() if value is not None})
        first = len(annotations) + 1
        annotations += _coco_annotations(graph, image_id, first)
        relations += _coco_relations(graph, image_id, first, len(relations) + 1)
    sections: dict[str, list[dict[str, Any]]] = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": i, "name": name} for i, name in enumerate(vocabulary.objects, 1)],
        "rel_annotations": relations,
        "rel_categories": [{"id": i, "name": name} for i, name in enumerate(vocabulary.predicates, 1)],
    }
    with whole_file(target, overwrite) as part, part.open("w", encoding="utf-8") as handle:
        handle.write('{"info":' + dump({"description": "scene graphs", "vocabulary": vocabulary.name}))
        for name, rows in sections.items():
            handle.write(f',\n"{name}":[')
            write_rows(handle, rows)
            handle.write("]")
        handle.write("}\n")
    return len(images)


def _coco_annotations(graph: SceneGraph, image_id: int | str, first: int) -> list[dict[str, Any]]:
    sizes = graph.boxes[:, 2:] - graph.boxes[:, :2]
    boxes = np.hstack([graph.boxes[:, :2], sizes]).tolist()
    rows = []
    for i, (box, area, label) in enumerate(zip(boxes, sizes.prod(axis=1).tolist(), graph.labels.tolist(), strict=True)):
        row: dict[str, Any] = {"id": first + i, "image_id": image_id, "category_id": label + 1, "iscrowd": 0}
        row |= {"bbox": box, "area": area}
        if graph.scores is not None:
            row["score"] = graph.scores.item(i)
        if graph.attributes is not None and graph.attributes[i]:
            plain = plain_attributes(graph.attributes[i])
            row["attributes" if isinstance(plain, list) else "attribute_scores"] = plain
        rows.append(row)
    return rows


def _coco_relations(graph: SceneGraph, image_id: int | str, first: int, number: int) -> list[dict[str, Any]]:
    rows, scores = [], graph.triplet_scores()
    for i, (s, o, p) in enumerate(graph.relations.tolist()):
        row: dict[str, Any] = {"id": number + i, "image_id": image_id, "subject_id": first + s, "object_id": first + o}
        row["predicate_id"] = p + 1
        if graph.relation_scores is not None:
            row["score"], row["predicate_score"] = scores.item(i), graph.relation_scores.item(i)
        rows.append(row)
    return rows
