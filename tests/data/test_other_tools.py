"""Files for graph databases and for Label Studio hold what the graphs hold, whatever their names."""

from __future__ import annotations

import json

import numpy as np
import pytest

from scenegpi import SceneGraph, Vocabulary
from scenegpi.data import DataError, convert, open_dataset, write_jsonl

WORDS = Vocabulary(['a "b"', "c,d\ne", "ü'ß", "\\n", "{}"], ['says "hi"', "near,\n"])


def graphs() -> list[SceneGraph]:
    boxes = np.array([[0, 0, 5, 5], [1, 2, 30, 40.5], [3, 3, 9, 9], [0, 1, 2, 3], [4, 4, 6, 6]], dtype=float)
    first = SceneGraph(
        boxes, range(5), WORDS, [(0, 1, 0), (1, 2, 1), (0, 1, 1)], image_id='x"1', file="a,b.jpg", width=50, height=60
    )
    second = SceneGraph(boxes[:2], [1, 1], WORDS, [(1, 0, 0)], image_id=2, scores=[0.5, 1.0], relation_scores=[0.25])
    return [first, second]


def test_label_studio(tmp_path):
    write_jsonl(tmp_path / "g.jsonl", graphs()[:1])
    assert convert(open_dataset(tmp_path / "g.jsonl"), tmp_path / "tasks.json", "label-studio") == 1
    (task,) = json.loads((tmp_path / "tasks.json").read_text())
    result = task["annotations"][0]["result"]
    boxes = [each for each in result if each["type"] == "rectanglelabels"]
    graph = graphs()[0]
    for each, box, name in zip(boxes, graph.boxes, graph.names, strict=True):
        value = each["value"]
        assert value["rectanglelabels"] == [name]
        size = np.array([each["original_width"], each["original_height"]]) / 100
        corner = np.array([value["x"], value["y"]]) * size
        assert np.allclose([*corner, *(corner + np.array([value["width"], value["height"]]) * size)], box)
    links = [(each["from_id"], each["labels"][0], each["to_id"]) for each in result if each["type"] == "relation"]
    assert links == [(f"box{s}", WORDS.predicates[p], f"box{o}") for s, o, p in graph.relations.tolist()]
    write_jsonl(tmp_path / "unsized.jsonl", graphs()[1:])
    with pytest.raises(DataError, match="width and height"):
        convert(open_dataset(tmp_path / "unsized.jsonl"), tmp_path / "no.json", "label-studio")
    assert not (tmp_path / "no.json").exists()
