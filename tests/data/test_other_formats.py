"""VRD, COCO in both forms, Open Images, COCO results, YOLO: what is read, and what is said of bad rows."""

from __future__ import annotations

import json

import pytest

from scenegpi.data import DataError, open_dataset, validate


def dump(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


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
    with pytest.raises(DataError, match=r"annotations_test\.json: JSON: key 'b\.jpg' stands twice"):
        open_dataset(folder)


def test_vrd_without_names(tmp_path):
    with pytest.raises(DataError, match=r"predicates\.json: cannot be read \(No such file"):
        open_dataset(vrd_folder(tmp_path, predicates=None))


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
            "category_id: 9 is no category",
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
            "1 is no annotation of this",
        ),
        (
            "rel_annotations",
            {"subject_id": 900, "object_id": 700, "predicate_id": 1, "image_id": 5},
            "1 is no rel_category",
        ),
        (
            "rel_annotations",
            {"subject_id": 900, "object_id": 700, "predicate_id": 4, "image_id": 6},
            "is no annotation of this image",
        ),
        (
            "rel_annotations",
            {"subject_id": 900, "object_id": 700, "predicate_id": 4, "image_id": 7},
            "the image is not in images",
        ),
        ("images", {"id": 5, "width": 3, "height": 3}, "image id: stands twice"),
        ("images", {"file_name": "x"}, "images[2].id"),
    ],
)
def test_coco_defects(tmp_path, field, row, message):
    value = coco()
    value[field].append(row)
    report = validate(dump(tmp_path / "x.json", value))
    assert report.errors >= 1
    assert message in " / ".join(map(str, report.defects))


def test_coco_lists_every_defect_of_an_image_and_no_other(tmp_path):
    value = coco()
    value["annotations"][0]["bbox"] = [1]
    value["annotations"][1]["category_id"] = 99
    value["rel_annotations"].append({"subject_id": 1, "object_id": 2, "predicate_id": 3, "image_id": 5})
    report = validate(dump(tmp_path / "x.json", value))
    assert [d.field for d in report.defects] == [
        "annotations[0].bbox",
        "annotations[1].category_id",
        "rel_annotations[1].subject_id",
        "rel_annotations[1].object_id",
        "rel_annotations[1].predicate_id",
    ]
    assert (report.errors, report.skipped) == (5, 1)


def test_coco_numbers_may_be_whole_floats(tmp_path):
    value = coco()
    value["images"][0]["width"] = 100.0
    value["annotations"][0]["category_id"] = 18.0
    assert open_dataset(dump(tmp_path / "x.json", value))[0].names == ["dog", "car"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": 900}, "annotations[1].id: 900 is no id, or stands twice"),
        ({"id": [1]}, "annotations[1].id: [1] is no id"),
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
        ({"categories": [{"id": 1}]}, "categories[0]: expected an id of its own and a name"),
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


HEADER = "ImageID,LabelName1,LabelName2,XMin1,XMax1,YMin1,YMax1,XMin2,XMax2,YMin2,YMax2,RelationshipLabel\n"


def test_open_images(tmp_path):
    rows = (
        "aa,/m/man,/m/car,0.1,0.5,0.2,0.4,0,1,0,1,inside_of\naa,/m/man,/m/hat,0.1,0.5,0.2,0.4,0.1,0.2,0.1,0.2,wears\n"
    )
    path = dump(tmp_path / "train-annotations-vrd.csv", "\ufeff" + HEADER + rows)
    dump(tmp_path / "class-descriptions.csv", "/m/man,Man\n/m/car,Car\n")
    dump(tmp_path / "sizes.json", {"aa": {"width": 200, "height": 100}})
    data = open_dataset(path, sizes=tmp_path / "sizes.json")
    assert data.vocabulary.objects == ("/m/hat", "Car", "Man")
    assert data[0].boxes.tolist() == [[20, 20, 100, 40], [0, 0, 200, 100], [20, 10, 40, 20]]
    assert [t[:3] for t in data[0].triplets()] == [("Man", "inside_of", "Car"), ("Man", "wears", "/m/hat")]
    assert data.split_codes().tolist() == [0]
    assert open_dataset(dump(tmp_path / "latest.csv", HEADER + rows)).split_codes().tolist() == [-1]
    nominal = open_dataset(path)
    assert (nominal[0].width, nominal.report.warnings) == (1024, 1)
    assert "canvas of 1024 x 1024" in str(nominal.report.defects[0])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("aa,m,c,x,0.5,0.2,0.4,0,1,0,1,r\n", "image aa: line 2: XMin1..YMax2: expected numbers"),
        ("aa,m,c,0.9,0.5,0.2,0.4,0,1,0,1,r\n", "has x2 < x1"),
        ("aa,m,c,0.1\n", "line 2: YMin1: missing"),
        ("aa,m,c,nan,0.5,0.2,0.4,0,1,0,1,r\n", "is not finite"),
    ],
)
def test_open_images_defects(tmp_path, rows, message):
    report = validate(dump(tmp_path / "x.csv", HEADER + rows))
    assert message in " / ".join(str(d) for d in report.defects if d.severity == "error")


def test_open_images_needs_its_columns(tmp_path):
    with pytest.raises(DataError, match="column 'LabelName1' is missing"):
        open_dataset(dump(tmp_path / "x.csv", "ImageID,Label\n1,2\n"))


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
    with pytest.raises(DataError, match=r"classes\.txt: expected class names"):
        open_dataset(tmp_path)


@pytest.mark.parametrize(
    "text", ['{"categories": [{"id": 1e400, "name": "a"}]}', '{"categories": [{"id": [1], "name": "a"}]}', "{}", "3"]
)
def test_names_that_are_none(tmp_path, text):
    path = dump(tmp_path / "x.json", [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}])
    with pytest.raises(DataError, match=r"names\.json: (expected class names|JSON)"):
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


def test_jsonl_bad_lines_are_left_out_or_stop_a_strict_run(tmp_path):
    good = '{"vocabulary": {"objects": ["a"]}, "image": {"id": 1}, "objects": [{"box": [0, 0, 1, 1], "label": "a"}]}'
    other = '{"image": {"id": 2}, "objects": [{"box": [0, 0, 1, 1], "label": "b"}], "relations": [{"subject": 4, "object": 0, "predicate": 0}]}'
    path = dump(tmp_path / "x.jsonl", f"{good}\n\n{other}\n{{]\n{good}\n")
    data = open_dataset(path)
    assert [g.image_id for g in data] == [1]
    assert [str(d).removeprefix(f"{path}: ") for d in data.report.defects] == [
        "image 2: line 3: objects[0].label: 'b' is not in the vocabulary",
        "image 2: line 3: relations[0].subject: expected an index of an object (0..0), found 4",
        "image 2: line 3: relations[0].predicate: expected a name or an index of the vocabulary, found 0",
        "line 4: JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "line 5: image.id: 1 stands twice",
    ]
    assert data.report.skipped == 3
    with pytest.raises(DataError, match=r"image 2: line 3: objects\[0\]\.label"):
        open_dataset(path, strict=True)
    trusted = open_dataset(path, trust=True)
    assert len(trusted) == 4
    with pytest.raises(DataError, match=r"line 3: objects\[0\]\.label"):
        trusted[1]
