"""Parquet with one row per image: the graphs of JSON lines, whatever the groups of rows; bad rows and bad files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from models.model_cases import VOCABULARY, random_graphs
from scenegpi.data import open_dataset, write_jsonl
from scenegpi.data.detector_results import NO_LABEL
from scenegpi.data.jsonl import json_lines
from scenegpi.data.limits import MAX_BOXES
from scenegpi.errors import DataError, RowError
from scenegpi.graph import SceneGraph

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet")
SIZES = tuple((3, 0, 1, 6, 12)[k % 5] for k in range(53))


def columns(graphs: list[SceneGraph], *without: str) -> dict[str, list]:
    table = {
        "id": [graph.image_id for graph in graphs],
        "file": [graph.file for graph in graphs],
        "width": [graph.width for graph in graphs],
        "height": [graph.height for graph in graphs],
        "boxes": [graph.boxes.tolist() for graph in graphs],
        "labels": [list(graph.names) for graph in graphs],
        "scores": [np.linspace(0.1, 1, len(graph)).tolist() for graph in graphs],
        "weather": ["fine"] * len(graphs),
    }
    return {name: values for name, values in table.items() if name not in without}


def same(found: SceneGraph, graph: SceneGraph) -> None:
    assert (found.image_id, found.width, found.height) == (graph.image_id, graph.width, graph.height)
    assert found.names == graph.names
    np.testing.assert_array_equal(found.boxes, graph.boxes)


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_rows_are_the_same_in_any_groups_and_any_order(tmp_path, rows, monkeypatch):
    monkeypatch.setattr("scenegpi.data.parquet.ROWS", 4)
    graphs = random_graphs(SIZES, dist=False)
    folder = tmp_path / "boxes"
    folder.mkdir()
    for k, some in enumerate((graphs[:20], graphs[20:])):
        pq.write_table(pa.table(columns(some)), folder / f"{k}.parquet", row_group_size=rows)
    data = pickle.loads(pickle.dumps(open_dataset(folder)))  # as it travels to another process
    assert len(data) == len(graphs)
    for found, graph in zip(data, graphs, strict=True):
        same(found, graph)
        np.testing.assert_allclose(found.scores if len(graph) else [], np.linspace(0.1, 1, len(graph)))
    for i in np.random.default_rng(rows).permutation(len(graphs)).tolist():
        same(data[i], graphs[i])
    boxes, relations = data.counts()
    assert boxes.tolist() == list(SIZES)
    assert not relations.any()


def test_a_column_of_json_lines_is_read_without_loss(tmp_path):
    graphs = random_graphs(SIZES)
    lines = [line.rstrip("\n") for line in json_lines(graphs)]
    pq.write_table(pa.table({"source": ["x"] * len(lines), "graph": lines}), tmp_path / "graphs.parquet")
    write_jsonl(tmp_path / "graphs.jsonl", graphs)
    assert list(open_dataset(tmp_path / "graphs.parquet")) == list(open_dataset(tmp_path / "graphs.jsonl"))
    assert open_dataset(tmp_path / "graphs.parquet").vocabulary == VOCABULARY


def test_boxes_alone_have_no_labels(tmp_path):
    graphs = random_graphs((3, 2), dist=False)
    pq.write_table(pa.table(columns(graphs, "labels", "scores", "file", "id")), tmp_path / "boxes.parquet")
    data = open_dataset(tmp_path / "boxes.parquet")
    assert data.vocabulary.objects == (NO_LABEL,)
    assert [len(graph) for graph in data] == [3, 2]
    assert data[0].scores is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("boxes", [[0.0, 0.0, 5.0]], "four numbers"),
        ("boxes", [[5.0, 0.0, 0.0, 5.0]], "boxes"),
        ("boxes", [[0.0, 0.0, float("nan"), 5.0]], "boxes"),
        ("boxes", [None], "four numbers"),
        ("boxes", [[0.0, 0.0, 1.0, 1.0]] * (MAX_BOXES + 1), "boxes|labels"),
        ("labels", None, "labels: missing"),
        ("labels", ["dog", "dog"], "one for each of 1"),
        ("labels", [None], "label"),
        ("scores", [float("nan")], "scores"),
        ("width", -3, "width"),
    ],
)
def test_a_bad_row_costs_one_image(tmp_path, name, value, message):
    table = columns(random_graphs((1, 1, 1), dist=False))
    table[name][1] = value
    pq.write_table(pa.table(table), tmp_path / "boxes.parquet")
    data = open_dataset(tmp_path / "boxes.parquet")
    with pytest.raises(RowError, match=rf"boxes\.parquet: row 1: .*({message})") as caught:
        data[1]
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), RowError)
    assert len(data[0]) == len(data[2]) == 1


def test_files_that_cannot_be_used(tmp_path):
    good = columns(random_graphs((2, 1), dist=False))
    table = tmp_path / "good.parquet"
    pq.write_table(pa.table(good), table)
    whole = table.read_bytes()
    for k, content in enumerate((b"no Parquet at all", whole[: len(whole) // 2], whole[:-8] + b"\xff\xff\xff\x7fPAR1")):
        file = tmp_path / f"bad{k}.parquet"
        file.write_bytes(content)
        with pytest.raises(DataError, match=rf"bad{k}\.parquet: cannot be read"):
            open_dataset(file)
    for k, rows in enumerate(({"box": [1]}, {**good, "labels": ["dog", "man"]}, {"graph": ["[]"]})):
        file = tmp_path / f"wrong{k}.parquet"
        pq.write_table(pa.table(rows), file)
        with pytest.raises(DataError, match=rf"wrong{k}\.parquet: "):
            open_dataset(file)
    folder = tmp_path / "two"
    folder.mkdir()
    pq.write_table(pa.table(good), folder / "0.parquet")
    pq.write_table(pa.table({"graph": ["{}"]}), folder / "1.parquet")
    with pytest.raises(DataError, match=r"1\.parquet: columns graph"):
        open_dataset(folder)


@pytest.mark.parametrize(
    "info",
    [
        "[" * 100_000,
        '{"info": 3}',
        '{"info": {"description": "{\\"categories\\": [{\\"id\\": [1], \\"name\\": \\"a\\"}]}", "features": 3}}',
        '{"info": {"features": {"objects": [{"label": {"names": [["a"], {}]}}]}}}',
    ],
)
def test_metadata_of_the_hub_that_cannot_be_used_are_ignored(tmp_path, info):
    objects = [[{"id": 1, "bbox": [0.0, 0.0, 5.0, 5.0], "label": "dog"}]]
    file = tmp_path / "hub.parquet"
    pq.write_table(pa.table({"objects": objects}).replace_schema_metadata({"huggingface": info}), file)
    assert open_dataset(file)[0].names == ["dog"]


def test_an_object_of_the_hub_without_a_usable_id_costs_one_image(tmp_path):
    objects = [[{"id": [1], "bbox": [0.0, 0.0, 5.0, 5.0], "label": "dog"}], []]
    pq.write_table(pa.table({"objects": objects}), tmp_path / "hub.parquet")
    data = open_dataset(tmp_path / "hub.parquet")
    assert len(data[1]) == 0
    with pytest.raises(RowError, match=r"row 0: objects\[0\]\.id: expected a number or a string"):
        data[0]


def test_repeated_values_do_not_fill_the_memory(tmp_path, monkeypatch):
    """A file of a few kilobytes that holds many equal numbers in one row."""
    monkeypatch.setattr("scenegpi.data.parquet.FREE_VALUES", 1 << 16)
    count = 1 << 16
    box = pa.ListArray.from_arrays(pa.array(np.arange(0, 4 * count + 1, 4), pa.int32()), pa.array(np.zeros(4 * count)))
    boxes = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), box)
    file = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"boxes": boxes}), file)
    assert file.stat().st_size < 1 << 13
    with pytest.raises(DataError, match="too many"):
        open_dataset(file)


def test_damaged_bytes_are_an_error_or_graphs(tmp_path):
    """Whatever a file holds, it is read or refused in one line."""
    table = columns(random_graphs((4, 2, 9), dist=False))
    pq.write_table(pa.table(table), tmp_path / "good.parquet", compression="none")
    whole = bytearray((tmp_path / "good.parquet").read_bytes())
    rng, refused = np.random.default_rng(0), 0
    for _ in range(150):
        torn = bytearray(whole)
        for at in rng.integers(0, len(torn), 3).tolist():
            torn[at] = int(rng.integers(256))
        file = tmp_path / "torn.parquet"
        file.write_bytes(torn)
        try:
            data = open_dataset(file)
            for i in range(min(len(data), 10)):
                try:
                    len(data[i])
                except RowError:
                    refused += 1
        except DataError:
            refused += 1
    assert refused
