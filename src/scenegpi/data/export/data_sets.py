"""Graphs -> whole data sets of other tools (docs/formats.md): Visual Genome, COCO, Label Studio, SGBench.

Each writer takes the graphs one by one, writes all or nothing, and returns the number of images.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.graphs import SPLIT_NAMES, Graphs
from scenegpi.data.jsonl import dump, write_rows
from scenegpi.errors import DataError, GraphError, Report, naming
from scenegpi.files import whole_file, whole_folder
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import plain_attributes
from scenegpi.vocabulary import Vocabulary

NAMES = ("label", "image", "attributes")
"""The names of the tags in `labelling_config`."""
MOST_TRIPLETS = 1000
"""Maximum triplets per image, where a pair may have several predicates (SGBench's ng_triplets)."""


def write_visual_genome(
    target: Path, graphs: Iterable[SceneGraph], splits: Iterable[int], vocabulary: Vocabulary, overwrite: bool = False
) -> int:
    """A folder with VG-SGG.h5, VG-SGG-dicts.json and image_data.json."""
    found = Graphs(vocabulary, Report(str(target)))
    for graph, split in zip(graphs, splits, strict=False):
        if graph.image_id is None or graph.width is None or graph.height is None:
            raise DataError(target, f"image {graph.key}: the Visual Genome layout needs an image id, width and height")
        with naming(target, GraphError):
            found.append(graph, split)
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
    """The h5 file as bytes: made in memory, so that a full disk can only affect the one write that follows."""
    import h5py  # late: the other writers don't need it

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
    kinds = ("label", "object", vocabulary.objects), ("predicate", "predicate", vocabulary.predicates)
    for kind, counted, names in kinds:
        counts = np.bincount(arrays[f"{kind}s"].ravel(), minlength=1 + len(names)).tolist()
        found[f"{kind}_to_idx"] = {name: i for i, name in enumerate(names, 1)}
        found[f"idx_to_{kind}"] = {str(i): name for i, name in enumerate(names, 1)}
        found[f"{counted}_count"] = dict(zip(names, counts[1:], strict=True))
    return found


def write_coco(
    target: Path, graphs: Iterable[SceneGraph], splits: Iterable[int], vocabulary: Vocabulary, overwrite: bool = True
) -> int:
    """One COCO JSON file with `rel_annotations` and `rel_categories`."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    relations: list[dict[str, Any]] = []
    for number, (graph, split) in enumerate(zip(graphs, splits, strict=False)):
        if graph.vocabulary != vocabulary:
            raise DataError(target, f"image {graph.image_id}: its vocabulary differs from that of earlier images")
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
    areas, labels, rows = sizes.prod(axis=1).tolist(), graph.labels.tolist(), []
    for i, (box, area, label) in enumerate(zip(boxes, areas, labels, strict=True)):
        row = {"id": first + i, "image_id": image_id, "category_id": label + 1, "iscrowd": 0, "bbox": box, "area": area}
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


def labelling_config(vocabulary: Vocabulary) -> str:
    """The XML of a labelling interface: boxes with these labels, relations with these predicates, text per region."""
    lines = ["<View>", "  <Relations>"]
    lines += [f"    <Relation value={_quoted(name)}/>" for name in vocabulary.predicates]
    lines += ["  </Relations>", '  <Image name="image" value="$image" zoom="true"/>']
    lines += ['  <RectangleLabels name="label" toName="image">']
    lines += [f"    <Label value={_quoted(name)}/>" for name in vocabulary.objects]
    lines += ["  </RectangleLabels>", '  <TextArea name="attributes" toName="image" perRegion="true"/>', "</View>", ""]
    return "\n".join(lines)


def _quoted(name: str) -> str:
    return '"' + re.sub(r"[\n\r\t]", lambda found: f"&#{ord(found[0])};", escape(name)) + '"'


def results(graph: SceneGraph, names: tuple[str, str, str] = NAMES) -> list[dict[str, Any]]:
    """Regions and relations of an image; DataError where its size is not known.

    `names` are those of the tags for labels, image and attributes in the project's interface.
    """
    if not len(graph):
        return []
    if not graph.width or not graph.height:
        name = graph.file or str(graph.image_id)
        raise DataError(name, "Label Studio's boxes are in percent, which needs the image's width and height")
    size = {"original_width": graph.width, "original_height": graph.height, "image_rotation": 0}
    found: list[dict[str, Any]] = []
    for i, ((x1, y1, x2, y2), label) in enumerate(zip(graph.boxes.tolist(), graph.names, strict=True)):
        value: dict[str, Any] = {"x": 100 * x1 / graph.width, "y": 100 * y1 / graph.height, "rotation": 0}
        value |= {"width": 100 * (x2 - x1) / graph.width, "height": 100 * (y2 - y1) / graph.height}
        region = {"id": f"box{i}", "to_name": names[1], **size}
        found.append(
            region | {"from_name": names[0], "type": "rectanglelabels", "value": value | {"rectanglelabels": [label]}}
        )
        if graph.scores is not None:
            found[-1]["score"] = graph.scores.item(i)
        if graph.attributes is not None and graph.attributes[i]:
            said = {"text": [name for name, _ in graph.attributes[i]]}
            found.append(region | {"from_name": names[2], "type": "textarea", "value": value | said})
    for s, o, p in graph.relations.tolist():
        ends = {"from_id": f"box{s}", "to_id": f"box{o}", "direction": "right"}
        found.append({"type": "relation", **ends, "labels": [graph.vocabulary.predicates[p]]})
    return found


def label_studio_task(graph: SceneGraph, number: int = 0, prefix: str = "", split: str | None = None) -> dict[str, Any]:
    """One image; `prefix` comes before the name of its picture."""
    name = graph.file or str(graph.image_id if graph.image_id is not None else f"image {number}")
    about = {"id": graph.image_id, "file": graph.file, "width": graph.width, "height": graph.height, "split": split}
    data = {
        "image": prefix + (quote(name) if prefix else name),
        "scenegpi": {key: value for key, value in about.items() if value is not None},
    }
    if graph.scores is None:
        return {"data": data, "annotations": [{"result": results(graph)}]}
    score = float(graph.scores.mean()) if len(graph) else 0.0
    return {"data": data, "predictions": [{"model_version": "scenegpi", "score": score, "result": results(graph)}]}


def write_label_studio(
    target: Path,
    graphs: Iterable[SceneGraph],
    splits: Iterable[int],
    vocabulary: Vocabulary,
    overwrite: bool = False,
    prefix: str = "",
) -> int:
    """A JSON file of tasks, and beside it the interface as XML."""
    with whole_file(target.with_suffix(".xml"), overwrite) as config, whole_file(target, overwrite) as part:
        config.write_text(labelling_config(vocabulary), encoding="utf-8")
        tasks = (
            label_studio_task(graph, number, prefix, SPLIT_NAMES.get(split))
            for number, (graph, split) in enumerate(zip(graphs, splits, strict=False))
        )
        with part.open("w", encoding="utf-8") as handle:
            handle.write("[")
            count = write_rows(handle, tasks)
            handle.write("\n]\n")
    return count


def write_sgbench(target: Path, graphs: Iterable[SceneGraph], vocabulary: Vocabulary, overwrite: bool = False) -> int:
    """One file in both forms that SGBench reads (see psg.py), the relations of an image best first.

    Where pairs have distributions, "ng_triplets", every predicate of every pair, are written as well: the package
    ranks predicates by them (PRank).
    """

    def rows() -> Iterator[dict[str, Any]]:
        for graph in graphs:
            if graph.image_id is None or graph.vocabulary != vocabulary:
                raise DataError(target, f"{graph.file}: SGBench needs an image id, and one vocabulary for all images")
            boxes, labels = graph.boxes.tolist(), graph.labels.tolist()
            order = (-graph.triplet_scores()).argsort(kind="stable")
            yield {
                "id": graph.image_id,
                "bboxes": boxes,
                "categories": labels,
                "triplets": graph.relations[order].tolist(),
                "ng_triplets": _all_predicates(graph),
                "annotation": [{"bbox": box, "category": label} for box, label in zip(boxes, labels, strict=True)],
            }

    with whole_file(target, overwrite) as part, part.open("w", encoding="utf-8") as handle:
        handle.write('{"version": 1, "images": [')
        count = write_rows(handle, rows())
        handle.write("\n]}\n")
    return count


def _all_predicates(graph: SceneGraph) -> list[list[int]]:
    """[subject, object, predicate] of every predicate of every pair, best first; none without distributions."""
    if graph.pair_dist is None or graph.pairs is None:
        return []
    sure = np.ones(len(graph)) if graph.scores is None else graph.scores
    values = sure[graph.pairs].prod(axis=1)[:, None] * graph.pair_dist[:, 1:]
    pair, predicate = np.unravel_index(np.argsort(-values, axis=None, kind="stable")[:MOST_TRIPLETS], values.shape)
    rows: list[list[int]] = np.column_stack([graph.pairs[pair], predicate]).tolist()
    return rows
