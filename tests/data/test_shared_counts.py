"""The real files: documented counts, splits, and loss-free conversion."""

from __future__ import annotations

import numpy as np
import pytest

from scenegpi.data import convert, open_dataset, statistics, validate


@pytest.fixture(scope="module")
def vg150(shared_data):
    return open_dataset(shared_data / "vg150")


@pytest.fixture(scope="module")
def vrd(shared_data):
    return open_dataset(shared_data / "vrd")


def test_vg150_counts(vg150):
    figures = statistics(vg150)
    assert (figures.images, figures.boxes, figures.relations) == (25_695, 188_128, 179_597)
    assert figures.splits == {"train": 19_301, "test": 6_394}
    assert (len(vg150.vocabulary.objects), len(vg150.vocabulary.predicates)) == (150, 50)
    assert figures.duplicate_relations / figures.relations == pytest.approx(0.17, abs=0.005)
    assert vg150.report.errors == 0


def test_vg150_splits_by_the_documented_rule(vg150):
    parts = {name: vg150.split(name, validation=1291) for name in ("train", "val", "test")}
    assert {name: len(part) for name, part in parts.items()} == {"train": 18_010, "val": 1_291, "test": 6_394}
    ids = [graph.image_id for part in parts.values() for graph in part]
    assert len(set(ids)) == 25_695
    train = [graph.image_id for graph in vg150.split("train")]
    assert [graph.image_id for graph in parts["val"]] == train[:1291]


def test_vg150_boxes_lie_in_their_images(vg150):
    boxes = vg150.source.boxes
    sizes = np.repeat(vg150.source.sizes, vg150.counts()[0], axis=0)
    assert (boxes[:, :2] > -2).all()
    assert (boxes[:, 2:] > sizes + 2).any(axis=1).sum() <= 2  # two boxes reach out by up to nine pixels


def test_vg150_allboxes_counts(shared_data):
    figures = statistics(open_dataset(shared_data / "vg150_allboxes"))
    assert (figures.images, figures.boxes, figures.relations) == (250, 2_849, 1_364)


def test_vrd_counts(vrd):
    for split, images, related, boxes, relations in (
        ("train", 4_000, 3_780, 26_430, 30_355),
        ("test", 1_000, 955, 6_735, 7_638),
    ):
        figures = statistics(vrd.split(split))
        assert (figures.images, figures.boxes, figures.relations) == (images, boxes, relations)
        assert len(vrd.split(split).drop_empty()) == related
    assert (len(vrd.vocabulary.objects), len(vrd.vocabulary.predicates)) == (100, 70)


def test_vrd_photos_are_found(vrd, shared_data):
    test = vrd.split("test")
    found = [test.image_path(i) for i in range(len(test))]
    assert sum(path is not None for path in found) == 802
    assert len({path for path in found if path}) == len(list((shared_data / "vrd" / "images").iterdir()))


@pytest.mark.parametrize("name", ["vg150_allboxes", "vrd"])
@pytest.mark.parametrize("target", ["x.jsonl", "x.json", "folder"])
def test_conversion_loses_nothing(shared_data, tmp_path, name, target):
    data = open_dataset(shared_data / name)
    convert(data, tmp_path / target)
    again = open_dataset(tmp_path / target)
    assert all(a == b for a, b in zip(data, again, strict=True))
    assert (again.split_codes() == data.split_codes()).all()
    assert again.vocabulary.name == data.vocabulary.name
    assert validate(tmp_path / target).errors == 0
