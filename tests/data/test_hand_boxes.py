"""Boxes as anyone would write them: each form gives the same graphs; anything else, one clear line."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenegpi.data import DataError, open_dataset
from scenegpi.data.detector_results import NO_LABEL, graph_of
from scenegpi.errors import GraphError

DOG, HAT = [10, 20, 110, 220], [30.5, 5, 60, 25]
ROWS = [{"box": DOG, "label": "dog"}, {"box": HAT, "label": "hat"}]
NAMED = {"file": "photo.jpg", "boxes": [DOG, HAT], "labels": ["dog", "hat"]}
CORNERS = [dict(zip(("x1", "y1", "x2", "y2"), row["box"], strict=True), label=row["label"]) for row in ROWS]


def write(folder, name, content):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder / name


@pytest.mark.parametrize(
    ("name", "content", "file"),
    [
        ("a.json", ROWS, None),
        ("a.json", CORNERS, None),
        ("a.json", [dict(zip(("xmin", "ymin", "xmax", "ymax", "label"), each.values(), strict=True)) for each in CORNERS], None),
        ("a.json", [{"bbox": [10, 20, 100, 200], "category": "dog"}, {"bbox": [30.5, 5, 29.5, 20], "category": "hat"}], None),
        ("a.json", {"objects": ROWS}, None),
        ("a.json", {"photo.jpg": ROWS}, "photo.jpg"),
        ("a.json", {"photo.jpg": {"boxes": [DOG, HAT], "labels": ["dog", "hat"]}}, "photo.jpg"),
        ("a.json", [NAMED], "photo.jpg"),
        ("a.json", [{**row, "file": "photo.jpg"} for row in ROWS], "photo.jpg"),
        ("a.json", {"image": {"file": "photo.jpg"}, "objects": ROWS}, "photo.jpg"),
        ("a.jsonl", json.dumps(NAMED) + "\n\n", "photo.jpg"),
        ("a.jsonl", json.dumps({"file": "photo.jpg", "objects": ROWS}), "photo.jpg"),
        ("a.jsonl", "\n".join(json.dumps(row) for row in ROWS), None),
        ("a.csv", "x1,y1,x2,y2,label\n10,20,110,220,dog\n30.5,5,60,25,hat\n", None),
        ("a.csv", "File, XMin, YMin, XMax, YMax, Class\nphoto.jpg, 10,20,110,220, dog\nphoto.jpg,30.5,5,60,25,hat", "photo.jpg"),
    ],
)  # fmt: skip
def test_every_natural_form_is_read_without_a_vocabulary(tmp_path, name, content, file):
    data = open_dataset(write(tmp_path, name, content))
    assert data.format == "boxes"
    (graph,) = data
    assert (graph.boxes.tolist(), graph.names, graph.file, graph.scores) == ([DOG, HAT], ["dog", "hat"], file, None)


def test_fractions_of_the_image_are_not_taken_for_pixels(tmp_path):
    with pytest.raises(GraphError, match="boxes: expected pixels, these are fractions of the image"):
        graph_of([[0.1, 0.1, 0.5, 0.5], [0, 0, 1, 1]])
    assert len(graph_of([[0, 0, 1, 1]])) == len(graph_of([[0.1, 0.1, 0.5, 2]])) == 1
    assert len(graph_of([[0.1, 0.1, 0.5, 0.5]], width=1, height=1)) == 1
    data = open_dataset(write(tmp_path, "a.json", {"boxes": [[0.1, 0.1, 0.5, 0.5]], "labels": ["dog"]}))
    assert "fractions of the image" in str(data.report.first_error)


def test_several_photos_scores_sizes_and_boxes_without_labels(tmp_path):
    rows = {"a.jpg": [{"box": DOG, "label": "dog", "score": 0.5}], "b.jpg": {"boxes": [HAT], "width": 90, "height": 50}}
    first, second = open_dataset(write(tmp_path, "a.json", rows))
    assert (first.file, first.scores.tolist(), second.file) == ("a.jpg", [0.5], "b.jpg")
    assert (second.names, second.width, second.height) == ([NO_LABEL], 90, 50)
    (bare,) = open_dataset(write(tmp_path, "b.json", [DOG, HAT]))
    assert bare.names == [NO_LABEL] * 2


def test_no_boxes_are_lost_where_a_photo_is_named_twice_or_is_number_0(tmp_path):
    twice = '{"a.jpg": [{"box": [1, 2, 3, 4], "label": "dog"}], "a.jpg": [{"box": [5, 2, 9, 4], "label": "cat"}]}'
    with pytest.raises(DataError, match=r"key 'a.jpg' is duplicated"):
        open_dataset(write(tmp_path, "a.json", twice))
    rows = [{"image_id": k, "box": DOG, "label": "dog"} for k in (0, 1)]
    assert [graph.file for graph in open_dataset(write(tmp_path, "b.json", rows))] == ["0", "1"]


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([(640, 480), (640, 480)], (640, 480)),
        ([(640, 480), (640, 400)], (None, None)),
        ([(100, 200), (100, 200)], (None, None)),  # of the box, not of the image
        ([("640px", 480), ("640px", 480)], (None, None)),
    ],
)
def test_rows_may_tell_the_size_of_their_image(tmp_path, sizes, told):
    """As in the CSV that TensorFlow's tools write."""
    head = "filename,width,height,class,xmin,ymin,xmax,ymax"
    rows = [f"a.jpg,{w},{h},{name},10,20,110,220" for (w, h), name in zip(sizes, ("dog", "cat"), strict=True)]
    (graph,) = open_dataset(write(tmp_path, "a.csv", "\n".join([head, *rows])))
    assert (graph.width, graph.height) == told
    assert graph.names == ["dog", "cat"]


def test_class_numbers_are_named(tmp_path):
    path = write(tmp_path, "a.csv", "x1,y1,x2,y2,class\n0,0,1,1,1\n")
    assert open_dataset(path, names=["cat", "dog"])[0].names == ["dog"]
    assert open_dataset(path)[0].names == ["class 1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", [{"box": [1, 2, 3], "label": "dog"}], "objects[0].box: expected four numbers"),
        ("a.json", {"a.jpg": [{"box": [3, 0, 1, 1]}]}, "image a.jpg: boxes[0]: [3.0, 0.0, 1.0, 1.0] has x2 < x1"),
        ("a.json", {"boxes": 3}, "boxes"),
        ("a.json", [*ROWS, {"box": DOG}], "objects[2].label: missing, though others have it"),
        ("a.csv", "x1,y1,x2,y2,label\n1,2,three,4,dog\n", "objects[0].box: expected four numbers"),
        ("a.csv", "x1,y1\n1,2\n", "objects[0].box: expected four numbers"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(tmp_path, name, content, message):
    data = open_dataset(write(tmp_path, name, content))
    assert len(data) == 0
    assert message in str(data.report.defects[0])


@settings(max_examples=60)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["box", "boxes", "objects", "label", "file", "image", "x1", "a"]), inner, max_size=4)))  # fmt: skip
def test_any_json_is_read_or_refused_in_one_line(tmp_path_factory, data):
    path = write(tmp_path_factory.mktemp("any"), "a.json", data)
    with contextlib.suppress(DataError):
        open_dataset(path, format="boxes")
