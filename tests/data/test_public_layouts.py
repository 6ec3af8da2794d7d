"""Public layouts hold the same scene; damaged files are one line or a defect; large ones are not held in memory."""

from __future__ import annotations

import json
import random
import shutil
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from data.layouts import BOXES, LAYOUTS, dump, label_studio, raw_vg, sgb, vg_object
from scenegpi import SceneGraph, Vocabulary
from scenegpi.data import DataError, convert, json_stream, open_dataset, statistics, validate, write_jsonl


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_scene_is_read_and_converted(layout, tmp_path):
    data = open_dataset(LAYOUTS[layout](tmp_path / "in"))
    assert data.format == layout.split()[0]
    assert len(data) == 2
    assert not data.report.errors
    graph = data[0]
    people = {"person": "man"}
    assert [people.get(name, name) for name in graph.names] == ["man", "horse"]
    assert graph.boxes.tolist() == [list(map(float, box)) for box in BOXES.values()]
    ((subject, predicate, other, _, s, o),) = graph.triplets()
    assert (people.get(subject, subject), predicate.removesuffix("s"), other, s, o) == ("man", "ride", "horse", 0, 1)
    described = {"visual-genome-raw": "old", "gqa": "old", "label-studio": "old", "hoi": "walk"}.get(data.format)
    assert graph.attributes == (((((described, 1.0),), ())) if described else None)
    assert str(graph.image_id) in ("7", "7.jpg")
    if data.format not in ("hoi", "sgb-predictions", "sgbench"):
        assert (graph.width, graph.height) == (120, 130)
    convert(data, tmp_path / "x.jsonl")
    again = open_dataset(tmp_path / "x.jsonl")
    assert list(again) == list(data)
    assert again.split_codes().tolist() == data.split_codes().tolist()
    assert statistics(data).to_dict()["images"] == 2
    assert not validate(data.path).errors


def test_splits_come_from_names_and_lists(tmp_path):
    codes = {
        name: open_dataset(LAYOUTS[name](tmp_path / name)).split_codes().tolist()
        for name in ("gqa", "psg", "coco-splits", "hoi", "parquet")
    }
    assert codes == {"gqa": [0, 0], "psg": [0, 2], "coco-splits": [0, 1], "hoi": [2, 2], "parquet": [0, 0]}


def test_boxes_of_a_resized_photo_are_scaled_back(tmp_path):
    path = sgb(tmp_path)
    (tmp_path / "images").mkdir()
    Image.new("RGB", (240, 120)).save(tmp_path / "images" / "7.jpg")  # shorter side 120, read at 500 x 1000
    graph = open_dataset(path)[0]
    assert (graph.width, graph.height) == (240, 120)
    assert graph.boxes[0].tolist() == pytest.approx([v * 120 / 500 for v in BOXES["man"]])
    assert graph.pair_dist.tolist() == [[0.1, 0.5, 0.4]]


DAMAGES = (None, [], {}, "x", -1, 1e308, True, [[[]]], {"a": 1}, 2**70, "\x00", [None])


def damaged(value, rng):
    """The value with one part of it replaced, removed or doubled."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        if rng.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: damaged(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.random() < 0.15:
            return value + value[at : at + 1]
        return [*value[:at], damaged(value[at], rng), *value[at + 1 :]]
    return rng.choice(DAMAGES)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "parquet"])
def test_damage_is_a_defect_or_one_line(layout, tmp_path):
    rng = random.Random(1)
    good = LAYOUTS[layout](tmp_path / "good")
    seen = set()
    for k in range(60):
        shutil.copytree(tmp_path / "good", tmp_path / str(k))
        path = tmp_path / str(k) / good.relative_to(tmp_path / "good")
        victim = rng.choice(sorted(path.parent.rglob("*.json") if path.is_file() else path.rglob("*.json")))
        victim.write_text(json.dumps(damaged(json.loads(victim.read_text()), rng)))
        try:
            data = open_dataset(path, format=layout.split()[0])
            seen.add("defects" if data.report.errors else "read")
            list(data)
        except DataError as error:
            seen.add("refused" if "\n" not in str(error) else "several lines")
    assert len(seen) >= 2
    assert seen <= {"defects", "read", "refused"}


def test_memory_grows_far_less_than_raw_visual_genome(tmp_path, monkeypatch):
    """Rows as large as those of the real files: 25 objects with synsets and attributes, 20 relations. What is held at
    once, whatever the size of the file, is made small."""
    monkeypatch.setattr(json_stream, "BLOCK", 2**14)

    def peak(images: int) -> tuple[int, int]:
        rows = []
        for image in range(images):
            more = {"synsets": ["man.n.01", "person.n.01"], "attributes": ["old", "standing"]}
            objects = [vg_object(50 * image + k, "man", **more) for k in range(25)]
            link = {"predicate": "next to", "synsets": ["along.r.01"], "relationship_id": 1234567}
            links = [link | {"subject_id": 50 * image + k, "object_id": 50 * image + k + 1} for k in range(20)]
            rows.append({"image_id": image, "objects": objects, "relationships": links})
        folder = tmp_path / str(images)
        size = dump(folder / "scene_graphs.json", rows).stat().st_size
        del rows
        tracemalloc.start()
        data = open_dataset(folder)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(data) == images
        return size, most

    peak(2)  # what is imported late
    (small, low), (large, high) = peak(50), peak(200)
    assert high - low < 0.5 * (large - small), (small, low, large, high)


def test_one_file_of_raw_visual_genome(tmp_path):
    folder = raw_vg(tmp_path, separate=True)
    assert len(open_dataset(folder / "relationships.json")[0].relations) == 1
    assert len(open_dataset(folder / "objects.json")[0]) == 1


def test_label_studio_both_ways(tmp_path):
    first = open_dataset(raw_vg(tmp_path / "vg"))
    convert(first, tmp_path / "tasks.json", "label-studio", prefix="/data/local-files/?d=photos/")
    (task, _) = json.loads((tmp_path / "tasks.json").read_text())
    assert task["data"]["image"] == "/data/local-files/?d=photos/7.jpg"
    again = open_dataset(tmp_path / "tasks.json")
    assert again.format == "label-studio"
    assert list(again) == list(first)
    scored = first[0].replace(scores=[0.5, 0.25])
    write_jsonl(tmp_path / "scored.jsonl", [scored])
    convert(open_dataset(tmp_path / "scored.jsonl"), tmp_path / "pre.json", "label-studio")
    (task,) = json.loads((tmp_path / "pre.json").read_text())
    assert "annotations" not in task
    assert task["predictions"][0]["score"] == pytest.approx(0.375)
    assert open_dataset(tmp_path / "pre.json")[0] == scored


def test_label_studios_own_tools_take_ours(tmp_path):
    interface = pytest.importorskip("label_studio_sdk.label_interface")
    convert(open_dataset(label_studio(tmp_path / "in")), tmp_path / "tasks.json", "label-studio")
    config = interface.LabelInterface((tmp_path / "tasks.xml").read_text())
    config.validate()
    task = json.loads((tmp_path / "tasks.json").read_text())[0]
    assert config.validate_annotation(task["annotations"][0])
    from label_studio_sdk.converter import Converter

    converter = Converter((tmp_path / "tasks.xml").read_text(), str(tmp_path), download_resources=False)
    dump(tmp_path / "imported.json", [each | {"id": 7} for each in (task,)])  # as Label Studio numbers what it imports
    converter.convert_to_coco(str(tmp_path / "imported.json"), str(tmp_path / "out"), is_dir=False)
    coco = json.loads((tmp_path / "out" / "result.json").read_text())
    names = {each["id"]: each["name"] for each in coco["categories"]}
    found = {names[each["category_id"]]: each["bbox"] for each in coco["annotations"]}
    assert found == {name: pytest.approx([x1, y1, x2 - x1, y2 - y1]) for name, (x1, y1, x2, y2) in BOXES.items()}


def test_sgbench_reads_what_is_written(tmp_path, caplog):
    pred = pytest.importorskip("sgbench.pred", reason="pip install --no-deps sgbench")
    data = open_dataset(sgb(tmp_path))
    assert convert(data, tmp_path / "predictions.json", "sgbench") == 2
    assert "cannot hold file (of 2 images), scores" in caplog.text
    found = pred.parse_pred(json.loads((tmp_path / "predictions.json").read_text()))["7"]
    assert found.bboxes.tolist() == list(map(list, BOXES.values()))
    assert (found.categories.tolist(), found.triplets.tolist()) == ([0, 1], [[0, 1, 0]])
    assert found.ng_triplets.tolist() == [[0, 1, 0], [0, 1, 1]]  # by the distribution 0.5, 0.4
    rank = pytest.importorskip("sgbench").predicate_rank
    assert rank(np.array([[0, 1, 1]]), found.ng_triplets, 2)[1] == 1.0
    with pytest.raises(DataError, match=r"psg\.json"):
        open_dataset(tmp_path / "predictions.json")
    again = open_dataset(tmp_path / "predictions.json", vocabulary=data.vocabulary)
    assert again.format == "sgbench"
    assert [t[:3] for t in again[0].triplets()] == [t[:3] for t in data[0].triplets()]


def test_priors_of_attributes_are_counted_however_the_data_are_stored(tmp_path):
    words = Vocabulary(["car", "man"], ["near"])
    boxes = [[0, 0, 5, 5]] * 4
    said = [["red"], {"red": 0.5, "old": 1.0}, [], ["old"]]
    graphs = [SceneGraph(boxes, [0, 0, 0, 1], words, attributes=said, image_id=1, width=9, height=9)]
    graphs.append(graphs[0].replace(attributes=None, image_id=2))
    write_jsonl(tmp_path / "x.jsonl", graphs)
    lines = open_dataset(tmp_path / "x.jsonl")
    convert(lines, tmp_path / "x.json", "coco")
    for data in (lines, open_dataset(tmp_path / "x.json"), open_dataset(tmp_path / "x.json")[:2]):
        assert statistics(data).attribute_priors() == {"car": {"red": 2 / 6, "old": 1 / 6}, "man": {"old": 1 / 2}}
    assert statistics(lines[1:]).attribute_priors() == {}
