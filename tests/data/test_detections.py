"""Detector output, COCO results and YOLO, and class names: what is read, and what is said of bad rows."""

from __future__ import annotations

import pytest
from PIL import Image

from scenegpi.data import DataError, open_dataset, validate
from vg_files import dump


def test_coco_results(tmp_path):
    rows = [
        {"image_id": 7, "category_id": 18, "bbox": [1, 2, 3, 4], "score": 0.9},
        {"image_id": 8, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.5},
        {"image_id": 7, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.25},
    ]
    path = dump(tmp_path / "x.json", rows)
    data = open_dataset(path)
    assert data.format == "coco-results"
    assert data[0].names == ["class 18", "class 1"]
    assert data[0].boxes.tolist() == [[1, 2, 4, 6], [0, 0, 1, 1]]
    assert data[0].scores.tolist() == [0.9, 0.25]
    named = open_dataset(path, names=dump(tmp_path / "names.json", {"1": "person", "18": "dog", "20": "sheep"}))
    assert named[0].names == ["dog", "person"]
    assert open_dataset(path, names={1: "a", 18: "b"})[0].names == ["b", "a"]
    with pytest.raises(DataError, match="category 18: has no name"):
        open_dataset(path, names=["a", "b"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"image_id": 7, "category_id": "x", "bbox": [1, 2, 3, 4]}, "image 7: [0].category_id"),
        ({"image_id": 7, "category_id": 1, "bbox": [1, 2, 3]}, "[0].bbox"),
        ({"image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4], "score": "high"}, "[0].score"),
        ({"image_id": 7, "category_id": 1, "bbox": [1, 2, -3, 4]}, "x2 < x1"),
        ({"category_id": 1}, "[0].image_id"),
        (3, "[0].image_id"),
    ],
)
def test_coco_results_defects(tmp_path, row, message):
    report = validate(dump(tmp_path / "x.json", [row, {"image_id": 9, "category_id": 1, "bbox": [0, 0, 1, 1]}]))
    assert message in str(report.defects[0])


def test_yolo(tmp_path):
    from PIL import Image

    labels, photos = tmp_path / "labels", tmp_path / "images"
    photos.mkdir()
    Image.new("RGB", (200, 100)).save(photos / "a.jpg")
    dump(labels / "a.txt", "1 0.5 0.5 0.5 1.0 0.75\n0 0.25 0.25 0.1 0.1 0.5\n\n")
    dump(labels / "b.txt", "")
    dump(labels / "classes.txt", "cat\ndog\n")
    data = open_dataset(labels, images=photos)
    assert data.format == "yolo"
    assert [g.image_id for g in data] == ["a", "b"]
    assert data[0].names == ["dog", "cat"]
    assert data[0].boxes[0].tolist() == [50, 0, 150, 100]
    assert data[0].scores.tolist() == [0.75, 0.5]
    assert (data[0].width, data[0].height, data[0].file) == (200, 100, "a.jpg")
    assert data.image_path(0) == photos / "a.jpg"
    assert len(data[1]) == 0


def test_yolo_of_photos_whose_suffix_is_in_capitals(tmp_path):
    """As cameras write it: the size of the photo makes pixels of fractions."""
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "DSC1.txt").write_text("0 0.5 0.5 0.5 0.5\n")
    Image.new("RGB", (200, 100)).save(tmp_path / "DSC1.JPG", "JPEG")
    data = open_dataset(tmp_path / "labels", names=["dog"], images=tmp_path)
    assert data.image_path(0) == tmp_path / "DSC1.JPG"
    assert (data[0].width, data[0].height, data[0].boxes.tolist()) == (200, 100, [[50, 25, 150, 75]])


def test_yolo_root_with_splits(tmp_path):
    from PIL import Image

    for split in ("train", "valid"):
        dump(tmp_path / split / "labels" / f"{split}.txt", "\ufeff0 0.5 0.5 0.5 0.5\n")
        (tmp_path / split / "images").mkdir()
        Image.new("RGB", (100, 50)).save(tmp_path / split / "images" / f"{split}.jpg")
    dump(tmp_path / "README.dataset.txt", "made by hand")
    dump(tmp_path / "data.yaml", "names: {0: 'hot, dog'}  # food\n")
    data = open_dataset(tmp_path)
    assert data.format == "yolo"
    assert data.split_codes().tolist() == [0, 1]
    assert data[0].names == ["hot, dog"]
    assert (data[0].width, data[0].height, data.report.warnings) == (100, 50, 0)


def test_a_blank_line_among_class_names_is_no_name(tmp_path):
    dump(tmp_path / "a.txt", "1 0.5 0.5 0.5 0.5\n")
    dump(tmp_path / "classes.txt", "\ufeffcat\n\ndog\n\n")
    with pytest.raises(DataError, match=r"classes\.txt: names\[1\]: expected a name"):
        open_dataset(tmp_path)


@pytest.mark.parametrize(
    "text", ['{"categories": [{"id": 1e400, "name": "a"}]}', '{"categories": [{"id": [1], "name": "a"}]}', "{}", "3"]
)
def test_names_that_are_none(tmp_path, text):
    path = dump(tmp_path / "x.json", [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}])
    with pytest.raises(DataError, match=r"names\.json: (expected class names|names: expected numbers|JSON)"):
        open_dataset(path, names=dump(tmp_path / "names.json", text))


@pytest.mark.parametrize(
    "text", ["names: [cat, 'dog']\n", "nc: 2\nnames:\n  - cat\n  - dog\n", "names:\n  0: cat\n  1: dog\nval: x\n"]
)
def test_yolo_names_from_yaml(tmp_path, text):
    dump(tmp_path / "labels" / "a.txt", "1 0.5 0.5 0.5 1.0\n")
    dump(tmp_path / "data.yaml", text)
    assert open_dataset(tmp_path / "labels")[0].names == ["dog"]


@pytest.mark.parametrize("line", ["1 0.5 0.5 0.5", "x 1 1 1 1", "1.5 0 0 0 0", "-1 0 0 0 0", "1 0 0 0 0 0 0"])
def test_yolo_defects(tmp_path, line):
    dump(tmp_path / "a.txt", f"0 0.5 0.5 0.5 0.5\n{line}\n")
    dump(tmp_path / "b.txt", "0 0.5 0.5 0.5 0.5\n")
    report = validate(tmp_path)
    errors = [d for d in report.defects if d.severity == "error"]
    assert (errors[0].image, errors[0].field) == ("a", "line 2")
    assert [g.image_id for g in open_dataset(tmp_path)] == ["b"]


def test_every_bad_line_of_a_yolo_file_is_listed(tmp_path):
    dump(tmp_path / "a.txt", "x\n0 0.5 0.5 0.5 0.5\n1 2\n")
    dump(tmp_path / "b.txt", "0 0.5 0.5 0.5 0.5\n")
    report = validate(tmp_path)
    assert [d.field for d in report.defects if d.severity == "error"] == ["line 1", "line 3"]
    assert report.skipped == 1
