"""One small scene, two images, written by hand in the layouts of public data sets."""

from __future__ import annotations

import json
from pathlib import Path

BOXES = {"man": [10, 20, 60, 100], "horse": [40, 50, 100, 110]}  # x1, y1, x2, y2


def dump(path: Path, data) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def xywh(name: str) -> dict:
    x1, y1, x2, y2 = BOXES[name]
    return {"x": x1, "y": y1, "w": x2 - x1, "h": y2 - y1}


def vg_object(number: int, name: str, **more) -> dict:
    return {"object_id": number, **xywh(name), "names": [name.upper(), "x"], "synsets": [], **more}


def raw_vg(folder: Path, separate: bool = False) -> Path:
    dump(
        folder / "image_data.json",
        [{"image_id": 7, "width": 120, "height": 130}, {"image_id": 9, "width": 50, "height": 40}],
    )
    man, horse = vg_object(1, "man"), vg_object(2, "horse")
    if not separate:
        link = {"predicate": "RIDES", "subject_id": 1, "object_id": 2, "relationship_id": 3}
        first = {"image_id": 7, "objects": [man | {"attributes": ["Old ", "old"]}, horse], "relationships": [link]}
        return dump(folder / "scene_graphs.json", [first, {"image_id": 9, "objects": [], "relationships": []}]).parent
    dump(folder / "objects.json", [{"image_id": 7, "objects": [man]}, {"image_id": 9, "objects": []}])
    dump(folder / "attributes.json", [{"image_id": 7, "attributes": [man | {"attributes": ["old"]}]}])
    link = {"predicate": "rides", "subject": man, "object": horse, "relationship_id": 3}
    return dump(
        folder / "relationships.json", [{"image_id": 7, "relationships": [link]}, {"image_id": 9, "relationships": []}]
    ).parent


def raw_vg_of(folder: Path, graphs) -> Path:
    """Any graphs as Visual Genome publishes its own; object ids count through all images."""
    about, rows, first = [], [], 1
    for graph in graphs:
        about.append({"image_id": graph.image_id, "width": graph.width, "height": graph.height})
        objects = [
            {"object_id": first + i, "names": [name], "x": x1, "y": y1, "w": x2 - x1, "h": y2 - y1}
            | ({"attributes": [word for word, _ in graph.attributes[i]]} if graph.attributes else {})
            for i, (name, (x1, y1, x2, y2)) in enumerate(zip(graph.names, graph.boxes.tolist(), strict=True))
        ]
        links = [
            {"predicate": t.predicate, "subject_id": first + t.subject_index, "object_id": first + t.object_index}
            for t in graph.triplets()
        ]
        rows.append({"image_id": graph.image_id, "objects": objects, "relationships": links})
        first += len(objects)
    dump(folder / "image_data.json", about)
    return dump(folder / "scene_graphs.json", rows).parent


def gqa(folder: Path) -> Path:
    man = {"name": "man", **xywh("man"), "attributes": ["old"], "relations": [{"name": "rides", "object": "2"}]}
    horse = {"name": "horse", **xywh("horse"), "attributes": [], "relations": []}
    image = {"width": 120, "height": 130, "location": "field", "objects": {"1": man, "2": horse}}
    return dump(folder / "train_sceneGraphs.json", {"7": image, "9": {"width": 50, "height": 40, "objects": {}}})


def psg(folder: Path) -> Path:
    rows = [{"bbox": BOXES["man"], "category_id": 0, "bbox_mode": 0}, {"bbox": BOXES["horse"], "category_id": 1}]
    first = {"image_id": "7", "file_name": "val2017/7.jpg", "width": 120, "height": 130, "pan_seg_file_name": "p.png"}
    first |= {"annotations": rows, "segments_info": [{"id": 1}, {"id": 2}], "relations": [[0, 1, 0]]}
    other = {"image_id": "9", "file_name": "9.jpg", "width": 50, "height": 40, "annotations": [], "relations": []}
    names = {"thing_classes": ["man"], "stuff_classes": ["horse"], "predicate_classes": ["rides"]}
    return dump(folder / "psg.json", {"data": [first, other], **names, "test_image_ids": ["9"]})


def coco_splits(folder: Path) -> Path:
    head = {
        "categories": [{"id": 3, "name": "man"}, {"id": 4, "name": "horse"}],
        "rel_categories": [{"id": 0, "name": "rides"}],
    }
    boxes = [
        {"id": 10 + i, "image_id": 7, "category_id": 3 + i, "bbox": list(xywh(name).values()), "iscrowd": 0}
        for i, name in enumerate(BOXES)
    ]
    link = {"id": 0, "subject_id": 10, "object_id": 11, "predicate_id": 0, "image_id": 7}
    image = {"id": 7, "file_name": "7.jpg", "width": 120, "height": 130}
    dump(
        folder / "train" / "_annotations.coco.json",
        {**head, "images": [image], "annotations": boxes, "rel_annotations": [link]},
    )
    other = {"id": 9, "file_name": "9.jpg", "width": 50, "height": 40}
    dump(
        folder / "valid" / "_annotations.coco.json",
        {**head, "images": [other], "annotations": [], "rel_annotations": []},
    )
    return folder


def hoi(folder: Path) -> Path:
    rows = [{"bbox": BOXES["man"], "category_id": 1}, {"bbox": BOXES["horse"], "category_id": 19}]
    links = [
        {"subject_id": 0, "object_id": 1, "category_id": 77},
        {"subject_id": 0, "object_id": -1, "category_id": 111},
    ]
    other = {"file_name": "9.jpg", "annotations": [], "hoi_annotation": []}
    return dump(
        folder / "test_hico.json", [{"file_name": "7.jpg", "annotations": rows, "hoi_annotation": links}, other]
    )


def sgb(folder: Path) -> Path:
    info = {
        "ind_to_classes": ["__background__", "man", "horse"],
        "ind_to_predicates": ["__background__", "rides", "near"],
    }
    dump(folder / "custom_data_info.json", {"idx_to_files": ["photos/7.jpg", "photos/9.jpg"], **info})
    first = {"bbox": list(BOXES.values()), "bbox_labels": [1, 2], "bbox_scores": [0.9, 0.8], "rel_pairs": [[0, 1]]}
    first |= {"rel_labels": [1], "rel_scores": [0.5], "rel_all_scores": [[0.1, 0.5, 0.4]]}
    empty = {name: [] for name in first}
    return dump(folder / "custom_prediction.json", {"0": first, "1": empty})


def sgbench(folder: Path, documented: bool = True) -> Path:
    psg(folder)  # whose numbers these are
    parts = {"bboxes": list(BOXES.values()), "categories": [0, 1]}
    if not documented:  # but what the package reads
        parts = {"annotation": [{"bbox": box, "category": i} for i, box in enumerate(BOXES.values())]}
    first = {"id": "7", **parts, "triplets": [[0, 1, 0]]}
    other = {"id": "9", "bboxes": [], "categories": [], "triplets": []}
    return dump(folder / "predictions.json", {"version": 1, "images": [first, other]})


def label_studio(folder: Path) -> Path:
    size = {"original_width": 120, "original_height": 130, "image_rotation": 0}
    regions = []
    for name, (x1, y1, x2, y2) in BOXES.items():
        value = {"x": x1 / 1.2, "y": y1 / 1.3, "width": (x2 - x1) / 1.2, "height": (y2 - y1) / 1.3, "rotation": 0}
        row = {"id": name, "from_name": "label", "to_name": "image", "type": "rectanglelabels", **size}
        regions.append(row | {"value": value | {"rectanglelabels": [name]}})
    regions.append(
        {"id": "man", "type": "textarea", "from_name": "attributes", "to_name": "image", "value": {"text": ["old"]}}
    )
    regions.append({"type": "relation", "from_id": "horse", "to_id": "man", "direction": "left", "labels": ["rides"]})
    cancelled = {"result": [], "was_cancelled": True}
    first = {
        "id": 7,
        "data": {"image": "/data/local-files/?d=photos%2F7.jpg"},
        "annotations": [{"result": regions}, cancelled],
    }
    return dump(folder / "export.json", [first, {"id": 9, "data": {"image": "http://x/9.jpg"}, "annotations": []}])


def parquet(folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    objects = [
        {"id": 5 + i, "bbox": list(map(float, xywh(name).values())), "category_id": i} for i, name in enumerate(BOXES)
    ]
    rows = {"image_id": [7, 9], "file_name": ["7.jpg", "9.jpg"], "width": [120, 50], "height": [130, 40]}
    rows |= {"objects": [objects, []], "relations": [[{"subject_id": 5, "object_id": 6, "predicate_id": 0}], []]}
    about = {
        "categories": [{"id": 0, "name": "man"}, {"id": 1, "name": "horse"}],
        "rel_categories": [{"id": 0, "name": "rides"}],
    }
    info = json.dumps({"info": {"description": json.dumps(about), "features": {}}})
    pq.write_table(
        pa.table(rows).replace_schema_metadata({"huggingface": info}), folder / "train-00000-of-00001.parquet"
    )
    return folder


LAYOUTS = {
    "visual-genome-raw": raw_vg,
    "visual-genome-raw separate": lambda folder: raw_vg(folder, separate=True),
    "gqa": gqa,
    "psg": psg,
    "coco-splits": coco_splits,
    "hoi": hoi,
    "sgb-predictions": sgb,
    "sgbench": sgbench,
    "sgbench package": lambda folder: sgbench(folder, documented=False),
    "label-studio": label_studio,
    "parquet": parquet,
}
