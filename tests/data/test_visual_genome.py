"""The Visual Genome reader: exact boxes, files as they differ in the wild, defects named one by one."""

from __future__ import annotations

import numpy as np
import pytest

import vg_files
from scenegpi.data import DataError, open_dataset, validate


def test_reads_boxes_labels_relations(tmp_path):
    data = open_dataset(vg_files.write(tmp_path))
    assert len(data) == 3
    assert data.format == "visual-genome"
    first = data[0]
    scale = 800 / 1024
    assert first.boxes[0].tolist() == [(512 - 100) * scale, (384 - 50) * scale, (512 + 100) * scale, (384 + 50) * scale]
    assert first.names == ["man", "hat"]
    assert (first.image_id, first.file, first.width, first.height) == (11, "11.jpg", 800, 600)
    assert [(t.subject, t.predicate, t.object) for t in first.triplets()] == [
        ("man", "wearing", "hat"),
        ("hat", "on", "man"),
    ]
    assert len(data[1]) == 0
    assert data[2].relations.tolist() == [[2, 0, 0]]
    assert data[2].boxes[0].tolist() == [90, 90, 110, 110]
    assert data.split_codes().tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": vg_files.arrays()["labels"].astype(np.int32)},
        {"labels": vg_files.arrays()["labels"][:, 0]},
        {"labels": vg_files.arrays()["labels"].astype(np.float32)},
        {"boxes_1024": vg_files.arrays()["boxes_1024"].astype(np.float32)},
        {"predicates": vg_files.arrays()["predicates"][:, 0]},
        {"boxes_512": None},
        {"split": np.array([0, 0, 2], dtype=np.int8)},
        {"img_to_first_box": np.array([0, -7, 2]), "img_to_last_box": np.array([1, -7, 4])},
        {"img_to_first_rel": np.array([0, -2, 2]), "img_to_last_rel": np.array([1, -100, 2])},
        {"relationships": vg_files.arrays()["relationships"].astype(np.uint64)},
        {"active_object_mask": np.ones((5, 1), dtype=bool), "attributes": np.zeros((5, 10))},
    ],
)
def test_files_differ_in_the_wild(tmp_path, changes):
    usual = list(open_dataset(vg_files.write(tmp_path / "usual")))
    found = open_dataset(vg_files.write(tmp_path / "wild", changes))
    assert list(found) == usual
    assert found.report.errors == 0


def test_only_boxes_512(tmp_path):
    half = vg_files.arrays()["boxes_1024"] / 2
    found = open_dataset(vg_files.write(tmp_path / "half", {"boxes_1024": None, "boxes_512": half}))
    assert list(found) == list(open_dataset(vg_files.write(tmp_path / "usual")))


def test_without_split_there_is_none(tmp_path):
    data = open_dataset(vg_files.write(tmp_path, {"split": None}))
    assert data.split_codes().tolist() == [-1, -1, -1]
    with pytest.raises(DataError, match="split 'train': no images"):
        data.split("train")


@pytest.mark.parametrize("background", [False, True])
def test_dictionaries_without_counts_or_with_one_direction_only(tmp_path, background):
    tables = vg_files.dicts()
    del tables["idx_to_label"], tables["idx_to_predicate"]
    if background:
        tables["label_to_idx"]["__background__"] = 0
    assert open_dataset(vg_files.write(tmp_path, dictionaries=tables))[0].names == ["man", "hat"]


def test_the_four_dropped_images(tmp_path):
    extra = [{"image_id": i, "width": 5, "height": 5} for i in (1592, 1722, 4616, 4617)]
    rows = vg_files.image_data()
    with_them = [*rows[:1], *extra[:2], rows[1], *extra[2:], rows[2]]
    assert list(open_dataset(vg_files.write(tmp_path, images=with_them))) == list(
        open_dataset(vg_files.write(tmp_path))
    )


def test_an_id_of_the_dropped_four_stays_where_the_lengths_match(tmp_path):
    rows = vg_files.image_data()
    rows[0]["image_id"] = 1592
    assert open_dataset(vg_files.write(tmp_path, images=rows))[0].image_id == 1592


def test_zero_area_is_kept_with_a_warning(tmp_path):
    report = validate(vg_files.write(tmp_path))
    assert (report.errors, report.warnings) == (0, 1)
    assert str(report.defects[0]).endswith("VG-SGG.h5: image 13: boxes[4]: [10.0, 20.0, 8.0, 0.0] has no area")


def changed(name, index, value, dtype=None):
    array = vg_files.arrays()[name].astype(dtype) if dtype else vg_files.arrays()[name].copy()
    array[index] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "image", "field", "message"),
    [
        (changed("labels", 0, 4), "11", "labels[0]", "4 is not a label"),
        (changed("labels", 0, 0), "11", "labels[0]", "0 is not a label"),
        (changed("labels", 0, np.nan, float), "11", "labels[0]", "is not a label"),
        (changed("predicates", 2, 3), "13", "predicates[2]", "3 is not a predicate"),
        (changed("relationships", 0, [0, 2]), "11", "relationships[0]", "[0, 2] refers to a box of another image"),
        (changed("relationships", 2, [4, -1]), "13", "relationships[2]", "refers to a box of another image"),
        (changed("boxes_1024", (3, 2), -5), "13", "boxes[3]", "has a negative width or height"),
        (changed("boxes_1024", (3, 2), np.nan, float), "13", "boxes[3]", "is not finite"),
        (changed("boxes_1024", 3, 1.7e308, float), "13", "boxes[3]", "is beyond 10,000,000 pixels"),
        (changed("img_to_last_box", 2, 9), "13", "img_to_first_box, img_to_last_box", "rows 2..9 of 5 are not a range"),
        (changed("img_to_last_box", 0, -1), "11", "img_to_first_box, img_to_last_box", "rows 0..-1"),
    ],
)
def test_a_defect_costs_its_image_only(tmp_path, changes, image, field, message):
    report = validate(vg_files.write(tmp_path, changes))
    errors = [d for d in report.defects if d.severity == "error"]
    assert (errors[0].image, errors[0].field) == (image, field)
    assert message in errors[0].message
    assert {d.image for d in errors} == {image}
    data = open_dataset(tmp_path)
    assert image not in [str(graph.image_id) for graph in data]
    assert len(data) == 2
    with pytest.raises(DataError, match=f"image {image}: "):
        open_dataset(tmp_path, strict=True)


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        (changed("img_to_first_box", 2, 1), [12]),
        (changed("img_to_last_box", 0, 2), [12]),
        (changed("img_to_last_box", 0, 4), [12]),
        (changed("img_to_first_rel", 2, 1), [12]),
    ],
)
def test_rows_that_two_images_claim_cost_both(tmp_path, changes, left):
    report = validate(vg_files.write(tmp_path, changes))
    errors = [d for d in report.defects if d.severity == "error"]
    assert any("belong to another image too" in d.message for d in errors)
    assert [graph.image_id for graph in open_dataset(tmp_path)] == left


def test_rows_without_any_image(tmp_path):
    none = np.zeros(0, dtype=int)
    changes = dict.fromkeys(
        ("img_to_first_box", "img_to_last_box", "img_to_first_rel", "img_to_last_rel", "split"), none
    )
    with pytest.raises(DataError, match=r"image_data\.json: contains no images"):
        open_dataset(vg_files.write(tmp_path, changes, images=[]))


def test_odd_splits_are_told(tmp_path):
    report = validate(vg_files.write(tmp_path, {"split": np.array([0, 7, 2])}))
    assert "image 12: split: 1 images are not in split 0, 1 or 2" in str(report.defects[-1])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"image_id": 11, "width": 0, "height": 3}], "width, height"),
        ([{"image_id": 11, "width": "8", "height": 3}], "width, height"),
        ([{"image_id": None, "width": 8, "height": 3}], "[0].image_id: expected a number"),
        ([{"image_id": 13, "width": 8, "height": 3}], "[2].image_id: is duplicated"),
    ],
)
def test_bad_image_data(tmp_path, rows, message):
    report = validate(vg_files.write(tmp_path, images=rows + vg_files.image_data()[1:]))
    assert message in str(report.defects[0])
    assert "image_data.json" in report.defects[0].file


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"changes": {"labels": None}}, "dataset 'labels' is missing"),
        ({"changes": {"boxes_1024": None, "boxes_512": None}}, "dataset 'boxes_1024' is missing"),
        ({"changes": {"labels": np.ones((4, 1), int)}}, "must have the same length do not: labels 4, boxes 5"),
        ({"changes": {"predicates": np.ones((2, 1), int)}}, "predicates 2, relationships 3"),
        ({"changes": {"img_to_last_rel": np.zeros(2, int)}}, "img_to_last_rel 2"),
        ({"changes": {"split": np.zeros(2, int)}}, "split: 2 rows, expected 3"),
        ({"changes": {"boxes_1024": np.zeros((5, 3))}}, "boxes_1024: unexpected shape (5, 3)"),
        ({"changes": {"labels": np.array([b"a"] * 5)}}, "labels: expected numbers"),
        ({"images": {"a": 1}}, "image_data.json: JSON: expected a list"),
        ({"images": []}, "0 images, but the h5 file has 3"),
        ({"dictionaries": {"idx_to_label": {}}}, "idx_to_predicate: missing"),
        ({"dictionaries": []}, "expected a JSON object, found list"),
        ({"dictionaries": {"idx_to_label": {"1": "a", "3": "b"}}}, "must run from 1 to 2, '2' is missing"),
        (
            {"dictionaries": {"idx_to_label": {"1": "a", "2": "a"}, "idx_to_predicate": {}}},
            "vocabulary.objects: 'a' is duplicated",
        ),
    ],
)
def test_files_that_cannot_be_read(tmp_path, options, message):
    with pytest.raises(DataError) as caught:
        open_dataset(vg_files.write(tmp_path, **options))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_dataset_that_claims_to_be_huge_is_refused(tmp_path):
    import h5py

    vg_files.write(tmp_path, {"labels": None})
    with h5py.File(tmp_path / "VG-SGG.h5", "a") as file:
        file.create_dataset("labels", shape=(10**12, 1), dtype="i8", chunks=(1024, 1))
    with pytest.raises(DataError, match=r"labels: shape .* more than the 134,217,728 this reader accepts"):
        open_dataset(tmp_path)


def test_links_to_other_files_are_not_followed(tmp_path):
    import h5py

    vg_files.write(tmp_path, {"labels": None})
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.ones(5, dtype="i8").tobytes())
    with h5py.File(tmp_path / "VG-SGG.h5", "a") as file:
        file.create_dataset("labels", shape=(5, 1), dtype="i8", external=[(str(secret), 0, 40)])
    with pytest.raises(DataError, match="labels: the data must be in this file"):
        open_dataset(tmp_path)
    with h5py.File(tmp_path / "VG-SGG.h5", "a") as file:
        del file["labels"]
        file["labels"] = h5py.ExternalLink(str(vg_files.write(tmp_path / "other") / "VG-SGG.h5"), "/labels")
    with pytest.raises(DataError, match="labels: the data must be in this file"):
        open_dataset(tmp_path)
    with h5py.File(tmp_path / "VG-SGG.h5", "a") as file:
        file["elsewhere"] = file.get("labels", getlink=True)
        del file["labels"]
        file["labels"] = h5py.SoftLink("/elsewhere")
    with pytest.raises(DataError, match="labels: the data must be in this file"):
        open_dataset(tmp_path)


def test_missing_companions(tmp_path):
    folder = vg_files.write(tmp_path)
    (folder / "image_data.json").unlink()
    with pytest.raises(DataError, match=r"image_data\.json: no such file"):
        open_dataset(folder)


def test_466_boxes_in_one_image(tmp_path):
    n = 466
    rng = np.random.default_rng(0)
    changes = {
        "labels": rng.integers(1, 4, (n, 1)),
        "boxes_1024": rng.integers(1, 500, (n, 4)),
        "boxes_512": None,
        "img_to_first_box": np.array([0, -1, -1]),
        "img_to_last_box": np.array([n - 1, -1, -1]),
        "img_to_first_rel": np.array([0, -1, -1]),
        "img_to_last_rel": np.array([999, -1, -1]),
        "predicates": rng.integers(1, 3, (1000, 1)),
        "relationships": rng.integers(0, n, (1000, 2)),
    }
    graph = open_dataset(vg_files.write(tmp_path, changes))[0]
    assert (len(graph), len(graph.relations)) == (466, 1000)
