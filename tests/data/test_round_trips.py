"""Written = read, for every writer and any graph."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from data.layouts import coco_splits
from scenegpi import SceneGraph, Vocabulary
from scenegpi.cli import app
from scenegpi.data import DataError, Dataset, convert, open_dataset, statistics, write_jsonl
from scenegpi.data.export.data_sets import write_coco, write_visual_genome
from strategies import VOCABULARY, graphs, small


@st.composite
def collections(draw, **options):
    """A few graphs with distinct ids, each with scores and distributions or without."""
    count = draw(st.integers(1, 4))
    ids = draw(st.lists(st.integers(-5, 10**9) | st.text(max_size=4), min_size=count, max_size=count, unique=True))
    return [draw(graphs(image_id=i, **options)) for i in ids]


@settings(max_examples=60)
@given(st.lists(graphs(), min_size=1, max_size=4, unique_by=lambda g: (type(g.image_id), g.image_id)), st.data())
def test_jsonl(items, data):
    splits = data.draw(st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=len(items), max_size=len(items)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        assert write_jsonl(path, items, splits) == len(items)
        found = open_dataset(path)
        assert list(found) == items
        assert found.split_codes().tolist() == splits


def without_distributions(graph: SceneGraph) -> SceneGraph:
    return graph.replace(label_dist=None, pairs=None, pair_dist=None)


@settings(max_examples=60)
@given(collections(), st.data())
def test_coco(items, data):
    """All but distributions comes back; x + w is x2 but for the last bits, and numbers are double."""
    splits = data.draw(st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=len(items), max_size=len(items)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        write_coco(path, items, splits, VOCABULARY)
        found = open_dataset(path)
        assert len(found) == len(items)
        for graph, item in zip(found, items, strict=True):
            np.testing.assert_allclose(graph.boxes, item.boxes, rtol=0, atol=1e-12)
            for name in ("scores", "relation_scores"):
                np.testing.assert_array_equal(getattr(graph, name), getattr(item, name))
            same = {name: getattr(item, name) for name in ("boxes", "scores", "relation_scores")}
            assert graph.replace(**same) == without_distributions(item)
        assert found.split_codes().tolist() == splits
        assert found.vocabulary == VOCABULARY


@settings(max_examples=60)
@given(collections(attributed=False), st.data())
def test_visual_genome(items, data):
    items = [without_distributions(item).replace(scores=None, relation_scores=None) for item in items]
    splits = data.draw(st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=len(items), max_size=len(items)))
    with TemporaryDirectory() as folder:
        write_visual_genome(Path(folder) / "vg", items, splits, VOCABULARY)
        found = open_dataset(Path(folder) / "vg")
        assert list(found) == items
        assert found.split_codes().tolist() == splits


def test_visual_genome_stays_in_whole_numbers_where_it_can(tmp_path):
    import h5py

    import vg_files

    data = open_dataset(vg_files.write(tmp_path / "in"))
    convert(data, tmp_path / "out")
    with h5py.File(tmp_path / "out" / "VG-SGG.h5") as file:
        assert file["boxes_1024"].dtype == np.int32
        assert (file["boxes_1024"][:] == vg_files.arrays()["boxes_1024"]).all()
        assert "boxes_pixel" not in file
        for name, value in vg_files.arrays().items():
            if name != "boxes_512":
                assert (file[name][:] == value).all(), name
    assert json.loads((tmp_path / "out" / "image_data.json").read_text()) == vg_files.image_data()


@pytest.mark.parametrize(
    ("graphs_", "message"),
    [
        (
            [SceneGraph([], [], VOCABULARY, image_id=1)],
            "image 1: the Visual Genome layout needs an image id, width and height",
        ),
        ([SceneGraph([], [], VOCABULARY, width=1, height=1)], "image None: the Visual Genome layout needs an image id"),
        ([SceneGraph([], [], Vocabulary(["x"]), image_id=1, width=1, height=1)], "its vocabulary differs"),
    ],
)
def test_what_visual_genome_cannot_hold_is_refused_and_nothing_is_left(tmp_path, graphs_, message):
    with pytest.raises(DataError, match=message):
        write_visual_genome(tmp_path / "vg", graphs_, [-1], VOCABULARY)
    assert list(tmp_path.iterdir()) == []


def test_extreme_coordinates_and_names(tmp_path):
    words = Vocabulary(["background", "__background__"], ["no relation"], "odd")
    boxes = [[-1e7, 0, 1e7, 5e-324], [1e6, -0.0, 1e6 + 1e-9, 1e7]]
    odd = SceneGraph(boxes, [0, 1], words, [[0, 1, 0]], image_id=1, width=2, height=2)
    none = SceneGraph([[0, 0, 1, 1]], [0], words, file="x.jpg", width=2, height=2)
    for target in ("x.jsonl", "x.json", "vg"):
        items = [odd, none] if target == "x.jsonl" else [odd]
        if target == "x.jsonl":
            write_jsonl(tmp_path / target, items)
        else:
            writer = write_coco if target == "x.json" else write_visual_genome
            writer(tmp_path / target, items, [-1] * len(items), words)
        assert list(open_dataset(tmp_path / target)) == items, target


def test_two_vocabularies_in_one_jsonl(tmp_path):
    other = Vocabulary(["x"], ["y"])
    items = [
        SceneGraph([], [], VOCABULARY, image_id=1),
        SceneGraph([[0, 0, 1, 1]], [0], other, image_id=2),
        SceneGraph([[0, 0, 1, 1]], [3], VOCABULARY, image_id=3),
    ]
    write_jsonl(tmp_path / "x.jsonl", items)
    assert list(open_dataset(tmp_path / "x.jsonl")) == items
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    assert [type(json.loads(line)["vocabulary"]) for line in lines] == [dict, dict, str]
    with pytest.raises(DataError, match="image 2: its vocabulary differs"):
        convert(open_dataset(tmp_path / "x.jsonl"), tmp_path / "x.json")
    with pytest.raises(DataError, match="image 2: its vocabulary differs"):
        statistics(open_dataset(tmp_path / "x.jsonl"))
    assert not (tmp_path / "x.json").exists()


def test_what_a_target_cannot_hold_is_named(tmp_path, caplog):
    graph = small(attributes=[["red"], [], []], label_dist=np.full((3, 4), 0.25))
    write_jsonl(tmp_path / "a.jsonl", [graph, small(image_id=8)])
    dataset = open_dataset(tmp_path / "a.jsonl")
    for target, said in {
        "b.jsonl": "",
        "a.json": "label_dist (of 1 images)",
        "vg": "label_dist (of 1 images), attributes (of 1 images)",
    }.items():
        caplog.clear()
        convert(dataset, tmp_path / target)
        assert said in caplog.text
        assert bool(said) == bool(caplog.records)


def test_the_command_names_what_a_target_cannot_hold(tmp_path):
    words = Vocabulary(["cat"], ["near"])
    write_jsonl(tmp_path / "a.jsonl", [SceneGraph([[0, 0, 4, 4]], [0], words, attributes=[["red"]], image_id=1)])
    done = CliRunner().invoke(app, ["data", "convert", str(tmp_path / "a.jsonl"), str(tmp_path / "a.json")])
    assert done.stderr == ""
    done = CliRunner().invoke(
        app, ["data", "convert", str(tmp_path / "a.json"), str(tmp_path / "b"), "--to", "sgbench"]
    )
    assert "the sgbench layout cannot hold attributes (of 1 images): left out" in done.stderr


@pytest.mark.parametrize("to", ["visual-genome", "coco", "jsonl"])
def test_a_data_set_is_not_written_over_itself(tmp_path, to):
    """Also where its own file is given, and the target is the folder that holds it."""
    words = Vocabulary(["cat"], ["near"])
    sized = {"width": 9, "height": 9}
    boxes = [[0, 0, 4, 4], [1, 1, 8, 8]]
    graphs_ = [SceneGraph(boxes, [0, 0], words, [(0, 1, 0)], image_id=1, **sized)]
    graphs_ += [SceneGraph(boxes[:1], [0], words, image_id=2, **sized)]
    write_jsonl(tmp_path / "a.jsonl", graphs_)
    target = tmp_path / {"visual-genome": "folder", "coco": "x.json", "jsonl": "x.jsonl"}[to]
    convert(open_dataset(tmp_path / "a.jsonl"), target, to)
    (tmp_path / "link").symlink_to(target)
    for source in (target, target / "VG-SGG.h5") if to == "visual-genome" else (target,):
        for name in (target, tmp_path / "link"):
            with pytest.raises(DataError, match="is an input"):
                convert(open_dataset(source).drop_empty(), name, to, overwrite=True)
    assert len(open_dataset(target)) == 2


def test_no_file_that_a_data_set_is_read_from_is_overwritten(tmp_path):
    """Of a folder, those beside the file that is named, and names and sizes; other files there may be replaced."""
    boxes = [
        SceneGraph([[0, 0, 4, 4]], [0], Vocabulary(["cat"], ["near"]), file="a.jpg", image_id=1, width=9, height=9)
    ]
    convert(boxes_of(tmp_path, boxes), tmp_path / "vg")
    splits = coco_splits(tmp_path / "coco")
    labels = tmp_path / "yolo" / "labels"
    labels.mkdir(parents=True)
    (labels / "a.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (tmp_path / "names.txt").write_text("cat\n")
    (tmp_path / "sizes.json").write_text('{"a.jpg": [9, 9]}')
    yolo = open_dataset(labels, names=tmp_path / "names.txt", sizes=tmp_path / "sizes.json")
    read = {
        open_dataset(tmp_path / "vg" / "VG-SGG.h5"): ["vg/VG-SGG-dicts.json", "vg/image_data.json"],
        open_dataset(splits): [str(file.relative_to(tmp_path)) for file in splits.rglob("*.json")],
        yolo: ["yolo/labels/a.txt", "names.txt", "sizes.json"],
    }
    for dataset, files in read.items():
        assert files
        for file in files:
            before = (tmp_path / file).read_bytes()
            with pytest.raises(DataError, match=f"{Path(file).name}: is an input"):
                convert(dataset, tmp_path / file, "coco", overwrite=True)
            assert (tmp_path / file).read_bytes() == before
    with pytest.raises(DataError, match="train: is an input"):
        convert(open_dataset(splits), splits / "train", "visual-genome", overwrite=True)
    for _ in range(2):
        assert convert(yolo, labels / "out.json", overwrite=True) == 1


def boxes_of(folder: Path, graphs_: list[SceneGraph]) -> Dataset:
    write_jsonl(folder / "a.jsonl", graphs_)
    return open_dataset(folder / "a.jsonl")
