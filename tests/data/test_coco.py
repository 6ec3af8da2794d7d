"""COCO with relations, in both forms: what is read, and what is said of bad rows."""

from __future__ import annotations

import pytest

from scenegpi.data import DataError, open_dataset, validate
from vg_files import dump


def coco():
    return {
        "images": [
            {"id": 5, "file_name": "five.jpg", "width": 100, "height": 50},
            {"id": 6, "file_name": "six.jpg", "width": 10, "height": 10},
        ],
        "annotations": [
            {"id": 900, "image_id": 5, "category_id": 18, "bbox": [1, 2, 30, 40], "iscrowd": 0},
            {"id": 700, "image_id": 5, "category_id": 3, "bbox": [5.5, 5, 10, 10]},
        ],
        "categories": [{"id": 3, "name": "car"}, {"id": 18, "name": "dog"}],
        "rel_annotations": [{"id": 1, "subject_id": 700, "predicate_id": 4, "object_id": 900, "image_id": 5}],
        "rel_categories": [{"id": 0, "name": "near"}, {"id": 4, "name": "behind"}],
    }


def test_coco_with_relations(tmp_path):
    data = open_dataset(dump(tmp_path / "x.json", coco()))
    assert data.format == "coco"
    assert data[0].names == ["dog", "car"]
    assert data[0].boxes.tolist() == [[1, 2, 31, 42], [5.5, 5, 15.5, 15]]
    assert [t[:3] for t in data[0].triplets()] == [("car", "behind", "dog")]
    assert len(data[1]) == 0


def test_coco_without_relations(tmp_path):
    plain = {key: value for key, value in coco().items() if not key.startswith("rel_")}
    data = open_dataset(dump(tmp_path / "x.json", plain))
    assert len(data[0]) == 2
    assert data.vocabulary.predicates == ()


@pytest.mark.parametrize(
    ("field", "row", "message"),
    [
        (
            "annotations",
            {"id": 1, "image_id": 5, "category_id": 9, "bbox": [1, 1, 1, 1]},
            "category_id: 9 is not a known category",
        ),
        ("annotations", {"id": 1, "image_id": 5, "category_id": 3, "bbox": [1, 1, -1, 1]}, "x2 < x1"),
        ("annotations", {"id": 1, "image_id": 5, "category_id": 3, "bbox": [1, 1, 1]}, "bbox: expected four numbers"),
        (
            "annotations",
            {"id": 1, "image_id": 9, "category_id": 3, "bbox": [1, 1, 1, 1]},
            "image 9: annotations: the image is",
        ),
        ("annotations", {"id": 1, "category_id": 3}, "annotations[2].image_id: expected"),
        (
            "rel_annotations",
            {"subject_id": 900, "object_id": 1, "predicate_id": 4, "image_id": 5},
            "1 is not a known annotation of this",
        ),
        (
            "rel_annotations",
            {"subject_id": 900, "object_id": 700, "predicate_id": 1, "image_id": 5},
            "1 is not a known rel_category",
        ),
        (
            "rel_annotations",
            {"subject_id": 900, "object_id": 700, "predicate_id": 4, "image_id": 6},
            "is not a known annotation of this image",
        ),
        (
            "rel_annotations",
            {"subject_id": 900, "object_id": 700, "predicate_id": 4, "image_id": 7},
            "the image is not in images",
        ),
        ("images", {"id": 5, "width": 3, "height": 3}, "image id: is duplicated"),
        ("images", {"file_name": "x"}, "images[2].id"),
    ],
)
def test_coco_defects(tmp_path, field, row, message):
    value = coco()
    value[field].append(row)
    report = validate(dump(tmp_path / "x.json", value))
    assert report.errors >= 1
    assert message in " / ".join(map(str, report.defects))


def test_coco_names_the_first_defect_of_an_image_and_no_other(tmp_path):
    value = coco()
    value["annotations"][0]["bbox"] = [1]
    value["annotations"][1]["category_id"] = 99
    value["rel_annotations"].append({"subject_id": 1, "object_id": 2, "predicate_id": 3, "image_id": 5})
    report = validate(dump(tmp_path / "x.json", value))
    assert [d.field for d in report.defects] == ["annotations[0].bbox"]
    assert (report.errors, report.skipped) == (1, 1)


def test_coco_numbers_may_be_whole_floats(tmp_path):
    value = coco()
    value["images"][0]["width"] = 100.0
    value["annotations"][0]["category_id"] = 18.0
    assert open_dataset(dump(tmp_path / "x.json", value))[0].names == ["dog", "car"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": 900}, "annotations[1].id: 900 is not an id, or is duplicated"),
        ({"id": [1]}, "annotations[1].id: [1] is not an id"),
        ({"score": 0.5}, "annotations[0].score: missing, though others of the image have it"),
        ({"bbox": [0, 0, 10**400, 1]}, "annotations[1].bbox"),
    ],
)
def test_coco_annotations_that_contradict_each_other(tmp_path, change, message):
    value = coco()
    value["annotations"][1] |= change
    assert message in str(validate(dump(tmp_path / "x.json", value)).defects[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"categories": 3}, "categories: expected a list"),
        ({"categories": [{"id": 1}]}, "categories[0]: expected a unique id and a name"),
        ({"images": None}, "images: expected a list"),
        ({"annotations": {}}, "annotations: expected a list"),
    ],
)
def test_coco_that_cannot_be_read(tmp_path, change, message):
    with pytest.raises(DataError) as caught:
        open_dataset(dump(tmp_path / "x.json", {**coco(), **change}))
    assert message in str(caught.value)


def test_coco_folder_with_rel_json(tmp_path):
    plain = {key: value for key, value in coco().items() if not key.startswith("rel_")}
    dump(tmp_path / "train.json", plain)
    dump(tmp_path / "test.json", {**plain, "images": [{"id": 8, "width": 5, "height": 5}], "annotations": []})
    rel = {"train": {"5": [[1, 0, 2]]}, "test": {}, "rel_categories": ["__background__", "near", "behind"]}
    dump(tmp_path / "rel.json", rel)
    data = open_dataset(tmp_path)
    assert data.format == "coco-folder"
    assert [t[:3] for t in data[0].triplets()] == [("car", "behind", "dog")]
    assert data.split_codes().tolist() == [0, 0, 2]
    dump(tmp_path / "rel.json", {**rel, "train": {"5": [], "77": []}})
    assert "image 77: rel.json train: the image is not in train.json" in str(validate(tmp_path).defects[0])
    for row, message in (([0, 2, 1], "out of range"), ([0, 1, 0], "out of range"), ([0, 1], "expected [subject")):
        dump(tmp_path / "rel.json", {**rel, "train": {"5": [row]}})
        assert message in str(validate(tmp_path).defects[0])


def test_splits_share_their_categories_even_where_one_is_empty(tmp_path):
    plain = {key: value for key, value in coco().items() if not key.startswith("rel_")}
    dump(tmp_path / "train.json", {**plain, "images": [], "annotations": []})
    dump(tmp_path / "test.json", {**plain, "categories": [{"id": 3, "name": "bus"}, {"id": 18, "name": "dog"}]})
    dump(tmp_path / "rel.json", {"rel_categories": ["near"]})
    with pytest.raises(DataError, match=r"test\.json: categories or rel_categories: differ"):
        open_dataset(tmp_path)
