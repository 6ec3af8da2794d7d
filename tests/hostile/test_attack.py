"""A small run of tools/attack.py, and what it rests on."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from attack import attack_files
from attack_folders import attack_folders
from attack_kills import attack_runs
from attack_mutations import damage, injure
from attack_worker import GOOD, examine
from conftest import SHARED
from scenegpi import GraphError, SceneGraph
from scenegpi.data import sample_path


def test_damaged_files():
    """Of real data where they are here, else of the sample."""
    data = SHARED / "data" / "vg150"
    found = attack_files(105, seed=11, data=data if data.is_dir() else None)
    assert found.faults == []
    total = sum(found.outcomes.values(), start=type(found.outcomes["vg"])())
    assert sum(total.values()) == 105
    assert all(total[outcome] > 5 for outcome in GOOD)


def test_whole_files_are_read(cases):
    for name, (how, path) in cases.items():
        assert examine(how, path) == "read", name


def test_damage_changes_something_and_a_seed_repeats_it(cases, tmp_path):
    rng, data = random.Random(0), sample_path().read_bytes()
    assert sum(injure(data, rng, text=True) != data for _ in range(50)) > 40
    how_many = 0
    for number, (_, original) in enumerate(cases.values()):
        if original.is_dir():
            continue
        twice = []
        for _ in range(2):
            path = damage(original, tmp_path / "work", random.Random(number))
            twice.append(path.read_bytes() if path.is_file() else None)
        # archives and h5 files carry the time at which they were made
        assert twice[0] == twice[1] or path.suffix in (".npz", ".h5")
        how_many += twice[0] != original.read_bytes()
    assert how_many > 15


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
    assert examine("data", path) in GOOD


def test_kills_at_random_moments():
    found = attack_runs(1, seed=3)
    assert found.faults == []
    assert found.outcomes == {"train: same bytes": 1, "predict: same bytes": 1}


def test_folders_of_others_changed_inputs_and_a_shared_store():
    assert attack_folders(1, seed=3) == []
