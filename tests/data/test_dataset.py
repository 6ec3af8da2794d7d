"""The data set object: lazy, indexable, picklable, with the field's filters."""

from __future__ import annotations

import operator
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import vg_files
from scenegpi import SceneGraph
from scenegpi.data import DataError, convert, open_dataset, statistics, write_jsonl
from strategies import VOCABULARY


@pytest.fixture(params=["folder", "x.jsonl", "x.json"])
def data(request, tmp_path):
    """The same three images in each format."""
    source = open_dataset(vg_files.write(tmp_path / "vg"))
    if request.param == "folder":
        return source
    convert(source, tmp_path / request.param)
    return open_dataset(tmp_path / request.param)


def test_is_a_sequence(data):
    assert len(data) == 3
    assert data[-1] == data[2] == list(data)[2]
    assert [g.image_id for g in data[1:]] == [12, 13]
    assert data[1:][1] == data[2]
    with pytest.raises(IndexError):
        data[3]
    assert "3 images" in repr(data)


def test_goes_to_worker_processes(data):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(operator.getitem, data, 2).result() == data[2]
    assert list(pickle.loads(pickle.dumps(data))) == list(data)


def test_splits_and_filters(data):
    assert [g.image_id for g in data.split("train")] == [11, 12]
    assert [g.image_id for g in data.split("test")] == [13]
    assert [g.image_id for g in data.drop_empty()] == [11, 13]
    assert [[g.image_id for g in data.spread(most)] for most in (0, 1, 2, 3)] == [
        [11, 12, 13],
        [11],
        [11, 12],
        [11, 12, 13],
    ]
    with pytest.raises(DataError, match="validation=N"):
        data.split("val")
    with pytest.raises(DataError, match="expected one of train, val, test"):
        data.split("dev")
    with pytest.raises(DataError, match="only 1 training images"):
        data.split("val", validation=2)
    figures = statistics(data)
    assert (figures.images, figures.boxes, figures.relations, figures.images_with_relations) == (3, 5, 3, 2)
    assert figures.object_counts.tolist() == [2, 2, 1]
    assert figures.predicate_counts.tolist() == [2, 1]
    assert statistics(data.split("train")).boxes == 2


def many(tmp_path, count=20):
    items = [
        SceneGraph([[0, 0, 2, 2]] * 2, [0, 1], VOCABULARY, [[0, 1, 0]] if i % 4 else [], image_id=i)
        for i in range(count)
    ]
    write_jsonl(tmp_path / "x.jsonl", items, [0] * count)
    return open_dataset(tmp_path / "x.jsonl")


def test_validation_takes_the_first_related_images_or_random_ones(tmp_path):
    data = many(tmp_path)
    val, train = data.split("val", validation=3), data.split("train", validation=3)
    assert [g.image_id for g in val] == [1, 2, 3]
    assert sorted(g.image_id for g in [*val, *train]) == list(range(20))
    drawn = [g.image_id for g in data.split("val", validation=3, seed=5)]
    assert drawn == [g.image_id for g in data.split("val", validation=3, seed=5)]
    assert any(drawn != [g.image_id for g in data.split("val", validation=3, seed=s)] for s in range(6, 9))


def crowded(tmp_path):
    boxes = [[0, 0, 10, 10], [5, 5, 15, 15], [20, 20, 30, 30], [11, 0, 12, 10]]
    relations = [[0, 1, 0], [0, 1, 0], [0, 1, 1], [0, 2, 2], [0, 3, 0]]
    lonely = SceneGraph(boxes, [0] * 4, VOCABULARY, [[0, 2, 1]], image_id=2)
    items = [SceneGraph(boxes, [0] * 4, VOCABULARY, relations, image_id=1), lonely]
    write_jsonl(tmp_path / "x.jsonl", items)
    return tmp_path / "x.jsonl"


def test_overlap_keeps_relations_whose_boxes_overlap(tmp_path):
    data = open_dataset(crowded(tmp_path), overlap=True)
    assert len(data) == 1
    assert data[0].relations.tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 1]]


def test_duplicates(tmp_path):
    path = crowded(tmp_path)
    assert len(open_dataset(path, duplicates="keep")[0].relations) == 5
    assert open_dataset(path, duplicates="drop")[0].relations.tolist() == [[0, 1, 0], [0, 1, 1], [0, 2, 2], [0, 3, 0]]
    with pytest.raises(DataError, match="duplicates 'some'"):
        open_dataset(path, duplicates="some")


def test_sampling_draws_one_predicate_a_pair_by_its_share_of_the_rows(tmp_path):
    data = open_dataset(crowded(tmp_path), duplicates="sample")
    draws = np.array([data[0].relations for _ in range(600)])
    assert (draws[:, :, :2] == [[0, 1], [0, 2], [0, 3]]).all()
    assert (draws[:, 0, 2] == 1).mean() == pytest.approx(1 / 3, abs=0.1)
    seeded = open_dataset(crowded(tmp_path), duplicates="sample", seed=1)
    assert seeded[0] == seeded[0] == pickle.loads(pickle.dumps(seeded))[0]
    epochs = []
    for epoch in range(12):
        seeded.epoch = epoch
        epochs.append(seeded[0].relations[0, 2])
    assert set(epochs) == {0, 1}
    assert [g.relations.tolist() for g in seeded] == [seeded[i].relations.tolist() for i in range(2)]


def test_validation_images_are_called_so_everywhere(tmp_path):
    data = many(tmp_path)
    val = data.split("val", validation=3)
    assert val.split_codes().tolist() == [1, 1, 1]
    convert(val, tmp_path / "val.jsonl")
    assert open_dataset(tmp_path / "val.jsonl").split_codes().tolist() == [1, 1, 1]
    whole = open_dataset(tmp_path / "x.jsonl", validation=3)
    assert statistics(whole).splits == {"train": 17, "val": 3}
    assert [g.image_id for g in whole.split("val")] == [1, 2, 3]


def test_statistics_of_sampled_relations_agree(tmp_path):
    data = open_dataset(crowded(tmp_path), duplicates="sample")
    figures = statistics(data)
    assert figures.relations == figures.predicate_counts.sum() == 4


def _names_of(data, start):
    return [graph.image_id for graph in data[start::2]]


@pytest.mark.parametrize("method", ["fork", "threads"])
def test_readers_do_not_disturb_each_other(tmp_path, method):
    data = many(tmp_path, 400)
    if method == "threads":
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(_names_of, [data] * 4, range(4)))
    else:
        with get_context("fork").Pool(2) as pool:
            found = pool.starmap(operator.getitem, [(data, i) for i in range(400)])
            assert [g.image_id for g in found] == list(range(400))
            return
    assert found == [list(range(start, 400, 2)) for start in range(4)]


def test_an_error_travels_between_processes():
    error = pickle.loads(pickle.dumps(DataError("a  file", "what is\nwrong")))
    assert str(error) == "a  file: what is\\nwrong"


def test_positions_choose_images(data):
    assert [g.image_id for g in data[[2, 0]]] == [13, 11]
    assert [g.image_id for g in data[np.array([True, False, True])]] == [11, 13]
    assert data[np.int64(1)].image_id == 12


def test_find(data):
    assert data.find(13) == 2
    assert data.find("12") == 1
    assert data.find("11.jpg") == 0
    with pytest.raises(DataError, match="no image with id '99'"):
        data.find(99)


def test_image_paths(tmp_path):
    from PIL import Image

    folder = vg_files.write(tmp_path)
    (folder / "VG_100K").mkdir()
    (folder / "VG_100K_2").mkdir()
    Image.new("RGB", (8, 6)).save(folder / "VG_100K" / "11.jpg")
    Image.new("RGB", (8, 6)).save(folder / "VG_100K_2" / "13.png")
    data = open_dataset(folder)
    assert [p.name if p else None for p in map(data.image_path, range(3))] == ["11.jpg", None, "13.png"]
    elsewhere = open_dataset(folder, images=folder / "VG_100K_2")
    assert [p is not None for p in map(elsewhere.image_path, range(3))] == [False, False, True]


def test_names_with_dots_and_the_id_zero(tmp_path):
    from PIL import Image

    for name in ("img.v1.jpg", "img.jpg", "0.jpg"):
        Image.new("RGB", (2, 2)).save(tmp_path / name)
    graphs = [SceneGraph([], [], VOCABULARY, image_id=0), SceneGraph([], [], VOCABULARY, image_id="img.v1")]
    write_jsonl(str(tmp_path / "x.jsonl"), graphs)
    data = open_dataset(tmp_path / "x.jsonl")
    assert [data.image_path(i).name for i in range(2)] == ["0.jpg", "img.v1.jpg"]


@pytest.mark.parametrize("name", ["../secret.jpg", "/etc/passwd", "a\0b"])
def test_names_that_lead_elsewhere_find_nothing(tmp_path, name):
    (tmp_path / "secret.jpg").write_bytes(b"x")
    (tmp_path / "images").mkdir()
    graph = SceneGraph([], [], VOCABULARY, image_id=1, file=name)
    write_jsonl(tmp_path / "x.jsonl", [graph])
    assert open_dataset(tmp_path / "x.jsonl", images=tmp_path / "images").image_path(0) is None
