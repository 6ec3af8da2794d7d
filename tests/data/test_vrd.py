"""VRD: what is read, and what is said of bad rows."""

from __future__ import annotations

import pytest

from scenegpi.data import DataError, open_dataset, validate
from vg_files import dump


def vrd_folder(tmp_path, **changes):
    man = {"category": 0, "bbox": [1, 20, 3, 40]}
    hat = {"category": 1, "bbox": [1, 5, 10, 15]}
    files = {
        "objects": ["man", "hat"],
        "predicates": ["on", "wear"],
        "annotations_train": {
            "a.jpg": [
                {"predicate": 1, "subject": man, "object": hat},
                {"predicate": 0, "subject": hat, "object": dict(man)},
                {"predicate": 0, "subject": {"category": 1, "bbox": [1, 20, 3, 40]}, "object": hat},
            ],
            "empty.jpg": [],
        },
        "annotations_test": {"b.jpg": [{"predicate": 0, "subject": man, "object": man}]},
        "image_sizes": {"a.jpg": {"width": 50, "height": 30}},
    }
    for name, value in {**files, **changes}.items():
        if value is not None:
            dump(tmp_path / f"{name}.json", value)
    return tmp_path


def test_vrd(tmp_path):
    data = open_dataset(vrd_folder(tmp_path))
    assert data.format == "vrd"
    first = data[0]
    assert first.boxes.tolist() == [[3, 1, 40, 20], [10, 1, 15, 5], [3, 1, 40, 20]]
    assert first.names == ["man", "hat", "hat"]
    assert first.relations.tolist() == [[0, 1, 1], [1, 0, 0], [2, 1, 0]]
    assert (first.image_id, first.width, first.height) == ("a.jpg", 50, 30)
    assert len(data[1]) == 0
    assert data[2].relations.tolist() == [[0, 0, 0]]
    assert data[2].width is None
    assert [len(data.split(name)) for name in ("train", "test")] == [2, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"annotations_train": {"a.jpg": 3}}, "image a.jpg: annotations: expected a list"),
        ({"annotations_train": {"a.jpg": [3]}}, "[0]: expected an object"),
        ({"annotations_train": {"a.jpg": [{"subject": 1}]}}, "[0].subject: expected an object"),
        ({"annotations_train": {"a.jpg": [{"subject": {"category": 0, "bbox": [1, 2]}}]}}, "[0].subject.bbox"),
        (
            {
                "annotations_train": {
                    "a.jpg": [
                        {
                            "subject": {"category": 0, "bbox": [9, 2, 1, 3]},
                            "object": {"category": 0, "bbox": [1, 2, 1, 3]},
                            "predicate": 0,
                        }
                    ]
                }
            },
            "boxes[0]: [1.0, 9.0, 3.0, 2.0] has x2 < x1 or y2 < y1",
        ),
        (
            {
                "annotations_train": {
                    "a.jpg": [
                        {
                            "subject": {"category": 7, "bbox": [1, 2, 1, 3]},
                            "object": {"category": 0, "bbox": [1, 2, 1, 3]},
                            "predicate": 0,
                        }
                    ]
                }
            },
            "labels[0]: [7] is outside 0..1",
        ),
        ({"image_sizes": {"a.jpg": {"width": -1, "height": 3}}}, "width: expected a positive whole number"),
    ],
)
def test_vrd_defects(tmp_path, changes, message):
    report = validate(vrd_folder(tmp_path, **changes))
    assert report.errors == report.skipped == 1
    assert message in str(report.defects[0])


def test_an_image_that_stands_twice_in_json_is_not_lost_silently(tmp_path):
    folder = vrd_folder(tmp_path)
    dump(folder / "annotations_test.json", '{"b.jpg": [], "b.jpg": []}')
    with pytest.raises(DataError, match=r"annotations_test\.json: JSON: key 'b\.jpg' is duplicated"):
        open_dataset(folder)


def test_vrd_without_names(tmp_path):
    with pytest.raises(DataError, match=r"predicates\.json: cannot be read \(No such file"):
        open_dataset(vrd_folder(tmp_path, predicates=None))


def test_the_first_bad_row_of_an_image_is_named(tmp_path):
    good = {"category": 0, "bbox": [1, 2, 1, 2]}
    rows = [{"subject": good, "object": good, "predicate": 0}, {"subject": good, "object": {"category": "x"}}, 3]
    report = validate(vrd_folder(tmp_path, annotations_train={"a.jpg": rows}))
    assert [d.field for d in report.defects] == ["[1].object.bbox"]
    assert (report.errors, report.skipped) == (1, 1)
