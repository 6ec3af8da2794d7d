"""A small run of the fuzzer; the large one is benchmarks/fuzz_readers.py."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SHARED
from fuzz_readers import corpus, examine, mutate, run
from scenegpi import GraphError, SceneGraph
from scenegpi.data import open_dataset, sample_path


@pytest.mark.parametrize("real", [False, True])
def test_mutated_files(real):
    data = SHARED / "data" / "vg150" if real else None
    if real and not data.is_dir():
        pytest.skip("needs the real data in ../shared/data, which is not here")
    outcomes, faults = run(120, seed=11, data=data)
    assert faults == []
    total = sum(outcomes.values(), start=type(outcomes["vg"])())
    assert total["refused"] > 10
    assert total["defects reported"] > 3


def test_whole_files_read_without_defects(tmp_path):
    for path in corpus(tmp_path, None):
        assert examine(path) == "reads", path
        assert len(open_dataset(path)) == 3


def test_mutations_change_something():
    rng, data = random.Random(0), sample_path().read_bytes()
    assert sum(mutate(data, rng, text=True) != data for _ in range(50)) > 40


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["image", "objects", "relations", "vocabulary", "box", "label", "pairs", "id", "subject", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(JSON)
def test_any_json_value_is_a_graph_or_a_graph_error(value):
    try:
        graph = SceneGraph.from_dict(value)
    except GraphError:
        return
    assert SceneGraph.from_json(graph.to_json()) == graph


@settings(max_examples=80)
@given(name=st.sampled_from(["x.json", "x.jsonl", "x.csv", "x.txt"]), data=st.binary(max_size=200))
def test_any_bytes_are_a_data_set_or_a_data_error(tmp_path_factory, name, data):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(data)
    assert examine(path) in ("reads", "defects reported", "refused")
