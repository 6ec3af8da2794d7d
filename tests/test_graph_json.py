"""A SceneGraph as JSON: written is read, and what can't be read is refused with its field."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given

from scenegpi import GraphError, SceneGraph
from strategies import graphs, small


@given(graphs())
def test_json_round_trip_loses_nothing(graph):
    text = graph.to_json()
    assert "\n" not in text
    assert SceneGraph.from_json(text) == graph
    assert SceneGraph.from_dict(json.loads(json.dumps(graph.to_dict()))) == graph


def test_the_vocabulary_is_last():
    """A person who opens a file sees the graph, not 200 words."""
    assert list(small().to_dict())[:3] == ["scenegpi", "image", "objects"]
    assert list(small().to_dict())[-1] == "vocabulary"


@given(graphs())
def test_pickle_round_trip_stays_read_only(graph):
    again = pickle.loads(pickle.dumps(graph))
    assert again == graph
    assert not again.boxes.flags.writeable


@pytest.mark.parametrize("change", [SceneGraph.replace, SceneGraph.with_fields])
def test_unknown_fields_are_refused(change):
    with pytest.raises(TypeError, match="no field 'size'"):
        change(small(), size=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "JSON"),
        ("[]", "line: expected an object"),
        ('{"scenegpi": 2}', "scenegpi: format version 2"),
        ("{}", "vocabulary: missing"),
        ('{"vocabulary": "x-1"}', "vocabulary: 'x-1' is not a known reference"),
        ('{"vocabulary": {"objects": ["a", "a"]}}', "vocabulary.objects: 'a' is duplicated"),
        ('{"vocabulary": {"objects": "man"}}', "vocabulary.objects: expected a list"),
        ('{"vocabulary": {"objects": [1]}}', "vocabulary.objects[0]"),
        ('{"vocabulary": {}, "objects": [3]}', "objects[0]: expected an object"),
        ('{"vocabulary": {"objects": ["a"]}, "objects": [{"box": [1, 2, 3], "label": "a"}]}', "objects[0].box"),
        ('{"vocabulary": {"objects": ["a"]}, "objects": [{"box": [1, 2, 3, "4"], "label": "a"}]}', "objects[0].box"),
        ('{"vocabulary": {"objects": ["a"]}, "objects": [{"box": [1, 2, 3, 4], "label": "b"}]}', "objects[0].label"),
        ('{"vocabulary": {"objects": ["a"]}, "objects": [{"box": [1, 2, 3, NaN], "label": "a"}]}', "JSON: NaN"),
        ('{"vocabulary": {"objects": ["a"]}, "objects": [{"box": [1, 2, 3, 1e999], "label": "a"}]}', "objects[0].box"),
        ('{"vocabulary": {"objects": ["a"]}, "relations": [{"subject": 0}]}', "relations[0].subject"),
        ("[" * 100_000, "JSON: nested too deeply"),
        (
            '{"vocabulary": {"objects": ["a"]}, "objects": [{"box": [1, 2, 3, 4], "label": "a", "score": 1'
            + "0" * 400
            + '}], "float32": ["scores"]}',
            "scores: expected numbers",
        ),
        (
            '{"vocabulary": {"objects": ["a"]}, "float32": ["label_dist"], "objects": ['
            '{"box": [1, 2, 3, 4], "label": "a", "distribution": [1]},'
            '{"box": [1, 2, 3, 4], "label": "a", "distribution": [1, 2]}]}',
            "label_dist: not an array",
        ),
        ('{"vocabulary": {"objects": ["\\ud800"]}}', "vocabulary.objects[0]"),
        ('{"vocabulary": {"objects": ["a"]}, "image": {"id": [1]}}', "image_id"),
        ('{"vocabulary": {"objects": ["a"]}, "image": 3}', "image: expected an object"),
        ('{"vocabulary": {"objects": ["a"]}, "image": {"file": 3}}', "image.file"),
    ],
)
def test_bad_json_names_the_field(text, message):
    with pytest.raises(GraphError) as caught:
        SceneGraph.from_json(text)
    assert str(caught.value).startswith(message)


def test_partial_columns_are_refused():
    data = small(scores=[1, 1, 1]).to_dict()
    del data["objects"][1]["score"]
    with pytest.raises(GraphError, match=r"objects\[1\]\.score: missing, though others have it"):
        SceneGraph.from_dict(data)


def test_labels_in_json_may_be_indices():
    data = small().to_dict()
    data["objects"][0]["label"] = 0
    assert SceneGraph.from_dict(data) == small()
