"""Distributions of a baseline in an npz file: round trip, attached to a data set, and files that are none."""

import io
import zipfile

import numpy as np
import pytest

from scenegpi.data import DataError, open_dataset, write_jsonl
from scenegpi.data.distributions import attach_distributions, read_distributions, write_distributions
from scenegpi.features.batch import SceneBatch


@pytest.fixture
def dataset(tmp_path, graphs):
    bare = [graph.replace(label_dist=None, pairs=None, pair_dist=None) for graph in graphs]
    write_jsonl(tmp_path / "data.jsonl", bare)
    return open_dataset(tmp_path / "data.jsonl")


@pytest.fixture
def arrays(tmp_path, graphs):
    """The arrays of a good file."""
    write_distributions(tmp_path / "good.npz", graphs)
    with np.load(tmp_path / "good.npz", allow_pickle=False) as file:
        return dict(file)


def test_what_is_written_is_attached_again_in_any_order(tmp_path, graphs, dataset):
    assert write_distributions(tmp_path / "d.npz", reversed(graphs)) == len(graphs)
    attached = attach_distributions(dataset, tmp_path / "d.npz")
    assert len(attached) == len(graphs)
    for found, want in zip(attached, graphs, strict=True):
        assert found.image_id == want.image_id
        assert np.array_equal(found.labels, want.labels)
        assert (found.label_dist is None) == (want.label_dist is None)
        if want.label_dist is not None:
            assert np.array_equal(found.label_dist, want.label_dist)
            assert np.array_equal(found.pairs, want.pairs)
            assert np.array_equal(found.pair_dist, want.pair_dist)
    assert SceneBatch.of(list(attached), given_labels=False).pair_dist is not None
    assert attached.find(12) == 4
    assert len(attached.drop_empty()) == len(dataset.drop_empty())


def test_half_precision_and_labels_alone(tmp_path, graphs, dataset):
    write_distributions(tmp_path / "d.npz", [g.replace(pairs=None, pair_dist=None) for g in graphs], np.float16)
    graph = attach_distributions(dataset, tmp_path / "d.npz")[3]
    assert graph.pairs is None
    assert graph.label_dist.dtype == np.float32
    np.testing.assert_allclose(graph.label_dist, graphs[3].label_dist, atol=1e-3)


def test_a_slice_of_the_data_needs_only_its_own_images(tmp_path, graphs, dataset):
    write_distributions(tmp_path / "d.npz", graphs[:3])
    assert len(attach_distributions(dataset[:3], tmp_path / "d.npz")) == 3
    with pytest.raises(DataError, match="no distributions for image '7'"):
        attach_distributions(dataset, tmp_path / "d.npz")


def test_another_number_of_boxes_and_other_names_are_refused(tmp_path, graphs, dataset, arrays):
    write_distributions(tmp_path / "d.npz", [graphs[4].replace(image_id=3), *graphs[1:]])
    with pytest.raises(DataError, match="image '3': 12 boxes, the data set has 3"):
        attach_distributions(dataset, tmp_path / "d.npz")
    np.savez(tmp_path / "e.npz", **arrays | {"objects": arrays["objects"][::-1]})
    with pytest.raises(DataError, match="differ from the names"):
        attach_distributions(dataset, tmp_path / "e.npz")


BAD = {
    "format: 2": {"format": np.int64(2)},
    "image_ids: one is duplicated": {"image_ids": np.array(["1"] * 6)},
    "objects: float64": {"objects": np.zeros(4)},
    "expected 7 offsets": {"box_ptr": np.arange(3)},
    "box_ptr: ends at": {"box_ptr": np.array([0, 3, 4, 4, 11, 23, 26])},
    "not a distribution": {"label_dist": np.full((25, 4), 0.3, dtype=np.float32)},
    "label_dist.0.: not a distribution": {"label_dist": np.full((25, 4), np.nan, dtype=np.float32)},
    "label_dist: 3 columns": {"label_dist": np.full((25, 3), 1 / 3)},
    "pair_dist: 1 rows": {"pair_dist": np.full((1, 4), 0.25)},
    "pairs.0.: the subject is the object": {"pairs": np.zeros((182, 2), dtype=int)},
    "pairs.0.: image 0 has 3 boxes, found .0, 3.": {"pairs": np.full((182, 2), (0, 3))},
    "pairs: int64 of shape": {"pairs": np.zeros((182, 2, 1), dtype=int)},
    "pairs: 3 columns": {"pairs": np.zeros((182, 3), dtype=int)},
    "pairs: one is duplicated": {"pairs": np.array([[0, 1]])},
}


@pytest.mark.parametrize("message", BAD)
def test_files_that_make_no_sense_are_named_in_one_line(tmp_path, arrays, message):
    change = dict(BAD[message])
    if message == "pairs: one is duplicated":
        change = {"pairs": arrays["pairs"].copy()}
        change["pairs"][1] = change["pairs"][0]
    np.savez(tmp_path / "bad.npz", **arrays | change)
    with pytest.raises(DataError, match=rf"bad\.npz: .*{message}") as error:
        read_distributions(tmp_path / "bad.npz")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["format", "image_ids", "objects", "predicates", "box_ptr", "pair_ptr", "pairs"])
def test_a_missing_array_is_named(tmp_path, arrays, name):
    np.savez(tmp_path / "bad.npz", **{key: value for key, value in arrays.items() if key != name})
    with pytest.raises(DataError, match=rf"bad\.npz: .*{name}"):
        read_distributions(tmp_path / "bad.npz")


def test_pickles_truncated_files_and_bombs_are_refused(tmp_path, arrays):
    bad = tmp_path / "bad.npz"
    np.savez(bad, **arrays | {"pairs": np.array([None], dtype=object)})
    with pytest.raises(DataError, match="Python objects"):
        read_distributions(bad)
    whole = (tmp_path / "good.npz").read_bytes()
    for content in (b"", b"PK", whole[: len(whole) // 2], whole[:-1]):
        bad.write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.npz: "):
            read_distributions(bad)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40, 51)})
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("pair_dist.npy", header.getvalue())
    with pytest.raises(DataError, match="the file holds only"):
        read_distributions(bad)


def test_graphs_that_cannot_be_written(tmp_path, graphs):
    with pytest.raises(DataError, match="no graph"):
        write_distributions(tmp_path / "d.npz", [])
    with pytest.raises(DataError, match="neither an id nor a file"):
        write_distributions(tmp_path / "d.npz", [graphs[0].replace(image_id=None)])
    with pytest.raises(DataError, match="box_ptr: ends at"):
        write_distributions(tmp_path / "d.npz", [graphs[0], graphs[1].replace(label_dist=None)])
    assert not (tmp_path / "d.npz").exists()
