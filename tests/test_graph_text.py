"""A graph in words, in tables, and in a notebook."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenegpi import SceneGraph, Vocabulary
from scenegpi.errors import GraphError
from strategies import graphs, small

WORDS = Vocabulary(["man", "horse", "hat", "sky"], ["on", "riding", "wearing", "has"])


def scene(vocabulary=WORDS, **fields) -> SceneGraph:
    boxes = [[10, 20, 60, 90], [5, 40, 95, 100], [20, 15, 40, 30], [0, 0, 300, 20], [200, 60, 290, 100]]
    relations = [[0, 1, 0], [0, 2, 2], [0, 1, 1], [4, 2, 3]]
    given = {"relation_scores": [0.9, 0.5, 0.8, 0.1], "width": 300, "height": 100, "image_id": 1} | fields
    return SceneGraph(boxes, [0, 1, 2, 3, 0], vocabulary, relations, **given)


def test_sentences_say_what_is_where_and_the_rare_before_the_common():
    text = scene(attributes=[["old"], [], [], [], []]).to_text()
    assert text == (
        "Objects: 2 man, horse, hat, sky. The old man 1 (left) is riding the horse (bottom left). "
        "The man 1 is wearing the hat (top left). The man 1 is on the horse. The man 2 (bottom right) has the hat."
    )


def test_triples_and_json():
    assert scene().to_text("triples").splitlines()[:2] == ["man 1 | riding | horse", "man 1 | wearing | hat"]
    data = json.loads(scene().to_text("json"))
    assert data["objects"][0] == {"id": 0, "label": "man 1", "box": [10, 20, 60, 90], "where": "left"}
    assert data["relations"][0] == [0, "riding", 1]
    assert "left_out" not in data


@settings(max_examples=60)
@given(graphs(), st.sampled_from(["sentences", "triples", "json"]), st.integers(100, 400))
def test_length_is_bounded(graph, style, limit):
    text = graph.to_text(style, limit)
    assert len(text) <= limit
    if style == "json":
        data = json.loads(text)
        left = data.get("left_out", {"objects": 0, "relations": 0})
        assert len(data["objects"]) + left["objects"] == len(graph)
        assert len(data["relations"]) + left["relations"] == len(graph.relations)


def test_what_is_left_out_is_counted():
    text = scene().to_text("triples", 100)
    assert text.endswith("more relations)")
    with pytest.raises(GraphError, match="style"):
        scene().to_text("poem")
    with pytest.raises(GraphError, match="limit"):
        scene().to_text(limit=10)


def test_tables():
    frame = scene().to_df()
    assert frame.iloc[0].tolist() == ["man", "on", "horse", 0.9, 0, 1]
    assert scene().to_df("objects")["label"].tolist() == scene().names
    assert scene().to_arrow().to_pylist() == frame.to_dict("records")
    assert scene().to_arrow("objects").schema == small(relations=[]).to_arrow("objects").schema
    with pytest.raises(GraphError, match="table"):
        scene().to_df("boxes")


def test_hetero_data():
    graph = scene()
    data = graph.to_hetero_data()
    data.validate()
    assert data["object"].y.tolist() == graph.labels.tolist()
    assert data["object", "riding", "object"].edge_index.tolist() == [[0], [1]]
    assert sum(data[kind].num_edges for kind in data.edge_types) == len(graph.relations)


def test_a_notebook_shows_boxes_with_their_relations(tmp_path):
    from PIL import Image

    Image.new("RGB", (300, 100)).save(tmp_path / "x.png")
    graph = scene(
        vocabulary=Vocabulary(["<b>man", "horse", "hat", "sky"], WORDS.predicates), photo=str(tmp_path / "x.png")
    )
    html = graph._repr_html_()
    assert html.count("<rect") == len(graph)
    assert "&lt;b&gt;man 1 riding horse" in html
    assert "<b>" not in html
    assert "data:image/jpeg" in html
    assert small()._repr_html_() is not None
    assert scene(photo=str(tmp_path / "none.png"))._repr_html_() is None


def test_supervision_draws_relations():
    supervision = pytest.importorskip("supervision")
    from scenegpi.viz.supervision import RelationAnnotator

    graph = scene()
    detections = supervision.Detections(xyxy=graph.boxes.astype(np.float32), class_id=graph.labels)
    picture = supervision.BoxAnnotator().annotate(np.zeros((100, 300, 3), np.uint8), detections)
    before = picture.copy()
    drawn = RelationAnnotator(top=2).annotate(picture, detections, graph)
    assert drawn is picture
    assert (drawn != before).any()
    assert (drawn.reshape(-1, 3) == (2, 74, 208)).all(axis=1).any()  # BGR
    with pytest.raises(ValueError, match="5 objects"):
        RelationAnnotator().annotate(picture, detections[:1], graph)
