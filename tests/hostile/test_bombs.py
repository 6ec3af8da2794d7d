"""Files that hold, or claim, far more than they should: one line, before the memory is taken."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

import vg_files
from scenegpi import GraphError, errors
from scenegpi.data import DataError, limits, open_dataset, validate
from scenegpi.data.class_names import read_names_file
from scenegpi.data.distributions import read_distributions
from scenegpi.data.evaluation_npz import EvaluationNpz
from scenegpi.files import parse_json
from scenegpi.npz import load_npz
from scenegpi.words.vectors import load_words

BYTES = 6_000_000


def many(word: str, between: str = ",") -> str:
    return between.join([word] * (BYTES // len(word)))


def refusal(read, *arguments) -> str:
    with pytest.raises(DataError) as caught:
        read(*arguments)
    assert str(caught.value).isprintable()
    return str(caught.value)


COCO = '{"categories": [{"id": 1, "name": "a"}], "images": [{"id": 1}], '


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", COCO + f'"annotations": [{many("{}")}]}}', "more than 100,000 errors"),
        ("x.json", COCO + f'"annotations": [], "x": [[{many("[]")}]]}}', "JSON: its values would take"),
        ("x.json", COCO + f'"annotations": [], "x": {{"y": [{many("{}")}]}}}}', "JSON: its values would take"),
        ("x.json", f'{{"annotations": [], "categories": [], "images": [{many("{}")}]}}', "images"),
        ("x.json", f"[{many('[]')}]", "JSON: its values would take"),
        ("x.jsonl", f'{{"vocabulary": {{"objects": []}}}}\n{many("{}", chr(10))}', "images"),
        ("x.jsonl", f'{{"vocabulary": {{"objects": []}}, "objects": [{many("{}")}]}}', "no line holds a JSON object"),
        ("x.csv", many(",", ""), "a line of more than"),
    ],
)
def test_text_of_one_thing_over_and_over(tmp_path, outcome, name, text, said):
    path = vg_files.dump(tmp_path / name, text)
    assert outcome("data", path) == "refused"
    with pytest.raises(DataError, match=said):
        open_dataset(path)


def test_a_list_of_detections_and_of_boxes_in_one_image(tmp_path, outcome):
    row = '{"image_id":1,"category_id":1,"bbox":[0,0,1,1]}'
    vg_files.dump(tmp_path / "x.json", f"[{many(row)}]")
    assert outcome("data", tmp_path / "x.json") == "defects"
    vg_files.dump(tmp_path / "x.json", COCO + f'"annotations": [{many(row)}]}}')
    assert outcome("data", tmp_path / "x.json") == "defects"
    defects = validate(tmp_path / "x.json").defects
    assert [str(d).rpartition("image 1: ")[2] for d in defects] == [
        f"boxes: {BYTES // len(row):,} in one image, more than the 10,000 this reader accepts"
    ]


@pytest.mark.parametrize(
    ("text", "times"),
    [("0 0.5 0.5 0 0\n", limits.MAX_BOXES + 1), ("0 0.5 0.5 0 0\n", 2_000_000), ("00\n", 2_700_000), ("0 ", 4_000_000)],
)
def test_yolo(tmp_path, outcome, text, times):
    (tmp_path / "a.txt").write_text(text * times)
    (tmp_path / "b.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    assert outcome("data", tmp_path) == "defects"
    assert len(open_dataset(tmp_path)) == 1


def test_names(tmp_path):
    for name, text in (
        ("classes.txt", many("a", "\n")),
        ("x.json", f"[{many('1')}]"),
        ("data.yaml", "names:[\n" * 10**6),
    ):
        assert "names" in refusal(read_names_file, vg_files.dump(tmp_path / name, text))


def test_words(tmp_path, outcome):
    path = tmp_path / "x.txt"
    path.write_text("".join(f"{i:x} 1\n" for i in range(700_000)))
    assert outcome("words", path) == "refused"
    assert "more than 500,000 words" in refusal(load_words, path)


def test_json_is_weighed_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("it was parsed"))
    for word in ("{}", "[]", '"ab"', '{"":{}}', '{"ab":1}'):
        with pytest.raises(GraphError, match="would take"):
            parse_json(f"[{many(word)},{many(word)}]".encode())


@pytest.mark.parametrize(
    "row", [[1.5, 2.25], {"id": 1, "bbox": [10.5, 20.5, 30.5, 40.5], "name": "a"}, "a longer name", 7]
)
def test_what_people_write_is_not_too_heavy(row):
    text = json.dumps([row] * (BYTES // len(json.dumps(row))))
    assert parse_json(text)[0] == row


def unwritten(folder: Path, rows: int, dtype: str) -> Path:
    """Visual Genome whose boxes and relations were never written."""
    none = dict.fromkeys(("labels", "boxes_1024", "boxes_512", "predicates", "relationships"))
    vg_files.write(folder, none)
    with h5py.File(folder / "VG-SGG.h5", "a") as file:
        for name, width in (("labels", 1), ("boxes_1024", 4), ("predicates", 1), ("relationships", 2)):
            file.create_dataset(name, (rows, width), dtype, chunks=(10**5, width), fillvalue=1)
    return folder


@pytest.mark.parametrize("dtype", ["f8", "i1", "f2"])
def test_rows_that_were_never_written(tmp_path, outcome, dtype):
    folder = unwritten(tmp_path, 10_000_000, dtype)
    assert (folder / "VG-SGG.h5").stat().st_size < 20_000
    assert outcome("data", folder) == "refused"
    assert "boxes_1024: shape (10000000, 4)" in refusal(open_dataset, folder)


def test_what_is_free_is_read_and_costs_its_image_only(tmp_path, outcome):
    assert outcome("data", unwritten(tmp_path, 1_000_000, "i1")) in ("read", "defects")


def test_a_chunk_that_unpacks_to_a_thousand_times_its_size(tmp_path, outcome):
    folder = vg_files.write(tmp_path, {"labels": None})
    with h5py.File(folder / "VG-SGG.h5", "a") as file:
        data = file.create_dataset("labels", (5, 1), "i8", chunks=(5, 1), compression="gzip")
        data.id.write_direct_chunk((0, 0), zlib.compress(bytes(10**9), 1))
    assert outcome("data", folder) == "refused"
    assert "labels: a chunk that unpacks to more than its 40 bytes" in refusal(open_dataset, folder)


def forged(path: Path, name: str, described: str, shape: tuple[int, ...], content: bytes = b"") -> Path:
    """An npz with one array whose header says so."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": described, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}.npy", header.getvalue() + content)
    return path


@pytest.mark.parametrize(
    ("described", "shape", "content", "said"),
    [
        ("<U0", (200_000_000,), b"", "expected numbers or names"),
        ("|S0", (10**12,), b"", "expected numbers or names"),
        ("|V0", (10**12,), b"", "expected numbers or names"),
        ("<f4", (-(10**9),), b"", "is negative"),
        ("<f8", (10**12,), b"", "the file holds only"),
        ("<f8", (2**62, 4), b"", "the file holds only"),
        ("|i1", (200_000_000,), bytes(200_000_000), "declares 1,600,000,000 bytes"),
        ("|O", (1,), b"x", "Python objects"),
    ],
)
def test_npz_headers(tmp_path, outcome, described, shape, content, said):
    path = forged(tmp_path / "x.npz", "image_ids", described, shape, content)
    assert outcome("distributions", path) == "refused"
    assert f"image_ids: {said}" in (text := refusal(read_distributions, path)) or said in text


def test_a_negative_array_pays_for_no_other(tmp_path):
    path = forged(tmp_path / "x.npz", "a", "<f4", (-(2**60),))
    with (
        zipfile.ZipFile(path, "a") as archive,
        zipfile.ZipFile(forged(tmp_path / "y.npz", "b", "<f4", (3,), bytes(12))) as y,
    ):
        archive.writestr("b.npy", y.read("b.npy"))
    assert "a: shape" in refusal(load_npz, path, ("a", "b"))
    assert load_npz(path, ("b",))["b"].tolist() == [0, 0, 0]


def test_more_members_than_an_npz_has(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for i in range(1200):
            archive.writestr(f"a{i}", b"")
    assert "more than 1,000 arrays" in refusal(load_npz, tmp_path / "x.npz", ("a",))


def test_columns_without_rows_are_no_vocabulary(tmp_path):
    arrays = {"gt_boxes": np.zeros((0, 4)), "gt_classes": np.zeros(0, int), "gt_rels": np.zeros((0, 3), int)}
    arrays |= {"rel_pairs": np.zeros((0, 2), int), "rel_scores": np.zeros((0, 10**9), np.float32)}
    arrays |= dict.fromkeys(("gt_box_ptr", "gt_rel_ptr", "rel_ptr"), np.array([0, 0]))
    np.savez(tmp_path / "x.npz", **arrays)
    assert "rel_scores: 1,000,000,000 columns" in refusal(EvaluationNpz, tmp_path / "x.npz", "predcls")


def test_distributions_of_one_image_are_not_held_for_all(tmp_path, outcome):
    """10,000 classes, 10,000 boxes; one box has a distribution, which must not become 400 MB for all of them."""
    names = [{"id": i, "name": f"c{i}"} for i in range(10_000)]
    rows = [{"image_id": 1, "category_id": 0, "bbox": [0, 0, 1, 1], "distribution": [1.0] + [0.0] * 9999}]
    rows += [{"image_id": 2 + i // 5000, "category_id": 0, "bbox": [0, 0, 1, 1]} for i in range(10_000)]
    images = [{"id": i} for i in (1, 2, 3)]
    path = vg_files.dump(tmp_path / "x.json", {"images": images, "categories": names, "annotations": rows})
    assert outcome("data", path) == "read"


def test_a_file_of_nothing_but_errors_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(errors, "KEPT_DEFECTS", 5)
    bad = {"image_id": 1, "category_id": 1}
    path = vg_files.dump(tmp_path / "x.json", [bad] * 5)
    assert validate(path).errors == 5
    vg_files.dump(path, [bad] * 6)
    assert refusal(validate, path).endswith(
        "more than 5 errors, the first: image 1: [0].bbox: expected four numbers, found None"
    )


def test_warnings_are_counted_but_not_all_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(errors, "KEPT_DEFECTS", 5)
    flat = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 0, 0]}
    report = validate(vg_files.dump(tmp_path / "x.json", [flat] * 9))
    assert (report.errors, report.warnings, len(report.defects)) == (0, 9, 5)
