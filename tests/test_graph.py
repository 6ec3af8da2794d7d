"""The record: checks, immutability, equality, subset and permute, JSON, networkx, memory."""

from __future__ import annotations

import io
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenegpi import GraphError, SceneGraph, Vocabulary
from strategies import VOCABULARY, graphs, small


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"boxes": [[0, 0, -1, 2]], "labels": [0], "relations": []}, "boxes[0]: [0.0, 0.0, -1.0, 2.0] has x2 < x1"),
        ({"boxes": [[0, 0, np.nan, 2]], "labels": [0], "relations": []}, "boxes[0]:"),
        ({"boxes": [[0, 0, 1]], "labels": [0], "relations": []}, "boxes: expected shape (n, 4), found (1, 3)"),
        ({"labels": [0, 1]}, "labels: expected shape (3), found (2,)"),
        ({"labels": [0, 1, 4]}, "labels[2]: [4] is outside 0..3"),
        ({"labels": [0, 1, -1]}, "labels[2]"),
        ({"labels": [0, 1, 0.5]}, "labels: expected whole numbers"),
        ({"labels": [0, 1, 2**40]}, "labels: a number is too large"),
        ({"labels": ["man", "hta", "c"]}, "labels[1]: 'hta' is not in the vocabulary; did you mean 'hat'?"),
        ({"labels": ["man", "hat", "Xyz"]}, "labels[2]: 'Xyz' is not in the vocabulary"),
        ({"labels": ["man", 0, None]}, "labels: expected numbers"),
        ({"labels": [b"a", b"b", b"c"]}, "labels: expected numbers"),
        ({"file": "\ud800"}, "file: "),
        ({"image_id": "\ud800"}, "image_id: "),
        ({"relations": [[0, 3, 0]]}, "relations[0]: [0, 3] is outside 0..2"),
        ({"relations": [[0, 1, 3]]}, "relations (predicate)[0]: [3]"),
        (
            {"relations": [(0, 1, "on"), (1, 0, "waering")]},
            "relations[1].predicate: 'waering' is not in the vocabulary; did you mean 'wearing'?",
        ),
        ({"relations": [(0, 1, "q")]}, "relations[0].predicate: 'q' is not in the vocabulary"),
        ({"relations": [(0, "man", "on")]}, "relations[0].object: expected the index of a box, found 'man'"),
        ({"relations": [(0, 1, "on"), (1, 0)]}, "relations[1]: expected subject, object and predicate, found (1, 0)"),
        ({"relations": [(0, 3, "on")]}, "relations[0]: [0, 3] is outside 0..2"),
        ({"scores": [1, 2]}, "scores: expected shape (3)"),
        ({"scores": [1, 2, np.inf]}, "scores[2]: not finite"),
        ({"label_dist": np.ones((3, 5))}, "label_dist: expected shape (3, 4)"),
        ({"pairs": [[0, 1]]}, "pairs: give both pairs and pair_dist"),
        ({"pairs": [[0, 9]], "pair_dist": [[1, 0, 0, 0]]}, "pairs[0]: [0, 9]"),
        ({"pairs": [[0, 1]], "pair_dist": [[1, 0, 0]]}, "pair_dist: expected shape (1, 4)"),
        ({"width": 0}, "width: expected a positive whole number"),
        ({"height": 2.5}, "height"),
        ({"image_id": 1.5}, "image_id"),
        ({"vocabulary": None}, "vocabulary"),
        ({"boxes": [[0, 0], [1]]}, "boxes: not an array"),
    ],
)
def test_nonsense_is_refused_with_the_field(changes, message):
    with pytest.raises(GraphError) as caught:
        small(**changes)
    assert str(caught.value).startswith(message)


def test_is_immutable_and_does_not_share_the_callers_arrays():
    boxes = np.zeros((3, 4))
    graph = small(boxes=boxes)
    boxes += 5
    assert (graph.boxes == 0).all()
    with pytest.raises(ValueError, match="read-only"):
        graph.labels[0] = 1
    with pytest.raises(AttributeError):
        graph.width = 3
    with pytest.raises(AttributeError):
        del graph.width


def test_takes_torch_tensors():
    torch = pytest.importorskip("torch")
    graph = small(boxes=torch.tensor([[0.0, 0, 10, 20], [2, 3, 4, 5], [1, 1, 1, 9]]), labels=torch.tensor([0, 1, 0]))
    assert graph == small()


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda names: np.array(names, dtype=object)])
def test_labels_may_be_names(kind):
    assert small(labels=kind(["man", "hat", "man"])) == small()
    assert small(labels=["man", 1, "man"]) == small()


@given(graphs())
def test_relations_may_be_names(graph):
    names = graph.vocabulary.predicates
    rows = [(s, o, names[p]) for s, o, p in graph.relations.tolist()]
    assert graph.replace(relations=rows) == graph
    assert graph.replace(relations=np.array(rows, dtype=object).reshape(-1, 3)) == graph


def test_a_suggestion_is_a_name_of_the_vocabulary_or_none():
    with pytest.raises(GraphError) as caught:
        small(labels=["man", "hat", "x" * 10_000])
    assert len(str(caught.value)) < 120
    with pytest.raises(GraphError) as caught:
        small(labels=["man", "hat", "strasse"])
    assert str(caught.value).endswith("did you mean 'straße'?")


@given(graphs())
def test_length_and_iteration_agree_on_the_objects(graph):
    assert list(graph) == graph.objects
    assert len(graph) == len(graph.objects) == len(graph.boxes)
    assert [each.label for each in graph] == graph.names
    assert [each.box for each in graph] == [tuple(box) for box in graph.boxes.tolist()]
    assert [t.score for t in graph.triplets()] == sorted(graph.triplet_scores().tolist(), reverse=True)
    assert np.asarray(graph, dtype=object).shape == ()  # one record, not an array of objects


def test_the_picture_is_drawn_on_the_photo_that_the_graph_remembers(tmp_path):
    from PIL import Image

    Image.new("RGB", (100, 80), (200, 30, 30)).save(tmp_path / "red.png")
    graph = small(width=100, height=80)
    read = graph.replace(photo=tmp_path / "red.png")
    assert read == graph
    assert read.subset([0, 1]).photo == str(tmp_path / "red.png")
    assert b"photo" not in read.to_json().encode()

    def red(picture):
        return ((np.asarray(Image.open(picture).convert("RGB")) == (200, 30, 30)).all(axis=-1)).mean()

    assert red(read.draw(tmp_path / "out.png")) > 0.2
    assert red(io.BytesIO(read._repr_png_())) > 0.2
    assert red(graph.draw(tmp_path / "blank.png")) == 0
    (tmp_path / "red.png").unlink()
    assert red(read.draw(tmp_path / "gone.png")) == 0  # an empty canvas


def test_text_has_the_words_of_people_and_files_those_of_the_data():
    graph = SceneGraph(
        [[0, 0, 9, 9], [1, 4, 8, 9]], ["men", "short"], Vocabulary(["men", "short"], ["wearing"]), [(0, 1, 0)]
    )
    assert str(graph.triplets()[0]) == "people - wearing - shorts (1.000)"
    assert str(graph.objects[1]) == "shorts (1.000)"
    assert "people wearing shorts" in repr(graph)
    assert graph.names == ["men", "short"]
    assert [each["label"] for each in graph.to_dict()["objects"]] == ["men", "short"]


def test_notebooks_show_the_picture():
    from PIL import Image

    image = Image.open(io.BytesIO(small()._repr_png_()))
    assert image.format == "PNG"
    assert image.width > 1000
    assert SceneGraph([], [], VOCABULARY)._repr_png_().startswith(b"\x89PNG")


def test_a_notebook_falls_back_to_the_text_where_nothing_can_be_drawn(monkeypatch):
    monkeypatch.setitem(sys.modules, "scenegpi.viz.picture", None)
    assert small()._repr_png_() is None


def test_with_fields_changes_what_it_is_given_and_copies_nothing():
    graph, boxes = small(scores=[0.5, 0.25, 1]), np.ones((3, 4))
    changed = graph.with_fields(boxes=boxes, scores=None)
    assert changed == graph.replace(boxes=boxes, scores=None)
    assert changed.boxes is boxes
    assert not boxes.flags.writeable
    assert changed.labels is graph.labels
    assert graph.scores is not None


def test_detections_are_read_as_by_the_data_room():
    found = {"boxes": [[0, 0, 4, 4], [1, 1, 2, 3]], "labels": [1, 0], "scores": [0.5, 0.25]}
    graph = SceneGraph.from_detections(found, ["man", "hat"], width=9, height=8, image_id="a", file="b.jpg")
    assert graph.names == ["hat", "man"]
    assert (graph.scores.tolist(), graph.width, graph.height) == ([0.5, 0.25], 9, 8)
    assert (graph.image_id, graph.file) == ("a", "b.jpg")
    assert SceneGraph.from_detections(found["boxes"], labels=["x", "y"]).names == ["x", "y"]


def test_takes_bfloat16():
    torch = pytest.importorskip("torch")
    assert small(scores=torch.tensor([0.5, 1.0, 0.25], dtype=torch.bfloat16)).scores.tolist() == [0.5, 1.0, 0.25]


def test_empty_graph():
    graph = SceneGraph([], [], VOCABULARY)
    assert len(graph) == 0
    assert graph.boxes.shape == (0, 4)
    assert graph.relations.shape == (0, 3)
    assert graph.triplets() == []
    assert SceneGraph.from_json(graph.to_json()) == graph


def test_repr_is_readable():
    assert repr(small()) == (
        "SceneGraph(7, 30x20, 3 boxes, 3 relations (man wearing hat; hat on man; man wearing hat))"
    )


def test_triplets_are_ranked_by_the_product_and_stable():
    graph = small(scores=[0.5, 1.0, 1.0], relation_scores=[0.4, 0.9, 0.4])
    assert [t.predicate for t in graph.triplets()] == ["on", "wearing", "wearing"]
    assert graph.triplets(top=1)[0].score == pytest.approx(0.45)
    assert graph.triplets(top=-1) == []
    assert str(graph.triplets(top=1)[0]) == "hat - on - man (0.450)"
    assert [t[4:] for t in small().triplets()] == [(0, 1), (1, 0), (0, 1)]


@given(graphs(), st.randoms())
def test_permute_moves_everything_along(graph, random):
    order = list(range(len(graph)))
    random.shuffle(order)
    permuted = graph.permute(order)
    assert (permuted.boxes == graph.boxes[order]).all()
    assert permuted.names == [graph.names[i] for i in order]
    place = {old: new for new, old in enumerate(order)}
    assert permuted.relations.tolist() == [[place[s], place[o], p] for s, o, p in graph.relations.tolist()]
    if graph.pairs is not None:
        assert permuted.pairs.tolist() == [[place[s], place[o]] for s, o in graph.pairs.tolist()]
    inverse = np.argsort(order).astype(int)
    assert permuted.permute(inverse) == graph


@given(graphs(), st.data())
def test_subset_keeps_what_lies_among_the_chosen(graph, data):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(graph), max_size=len(graph))), dtype=bool)
    part = graph.subset(mask)
    kept = np.flatnonzero(mask).tolist()
    wanted = [[kept.index(s), kept.index(o), p] for s, o, p in graph.relations.tolist() if s in kept and o in kept]
    assert part.relations.tolist() == wanted
    assert part == graph.subset(kept)
    if graph.label_dist is not None and kept:
        assert (part.label_dist == graph.label_dist[kept]).all()


@pytest.mark.parametrize("index", [[0, 0], [3], [-1], [True]])
def test_subset_refuses_what_is_no_choice(index):
    with pytest.raises(GraphError, match="subset"):
        small().subset(index)


def test_permute_refuses_a_part():
    with pytest.raises(GraphError, match="permute: 2 indices for 3 boxes"):
        small().permute([0, 1])


@given(graphs(), graphs())
def test_equality_is_by_content(a, b):
    assert a == a.permute(np.arange(len(a)))
    assert (a == b) == (a.to_json() == b.to_json())


def test_equality_sees_every_field():
    graph = small(scores=[1, 1, 1], relation_scores=[1, 1, 1], pairs=[[0, 1]], pair_dist=[[1, 0, 0, 0]])
    graph = graph.replace(label_dist=np.ones((3, 4)) / 4, file="x")
    changes = {
        "boxes": graph.boxes + 1,
        "labels": [1, 1, 0],
        "relations": graph.relations[[1, 0, 2]],
        "scores": [1, 1, 0.5],
        "relation_scores": [1, 0.5, 1],
        "label_dist": np.eye(4)[:3],
        "pairs": [[1, 0]],
        "pair_dist": [[0, 1, 0, 0]],
        "attributes": [["red"], [], {"old": 0.5}],
        "image_id": "7",
        "file": "y",
        "width": 31,
        "height": 21,
        "vocabulary": Vocabulary(["a", "b", "c", "d"], ["e", "f", "g"]),
    }
    assert set(changes) == set(SceneGraph.__slots__) - {"photo"}  # where it was is not what it shows
    for name, value in changes.items():
        assert graph.replace(**{name: value}) != graph, name
    assert graph != "a graph"


@pytest.mark.parametrize(
    "attributes", [["red"], "red", [["red"], [], 3], [[""], [], []], [{"red": "x"}, [], []], [{"red": -1}, [], []], 5]
)
def test_attributes_that_are_none(attributes):
    with pytest.raises(GraphError, match=r"^attributes"):
        small(attributes=attributes)


def test_attributes_follow_their_boxes():
    graph = small(attributes=[["red", "red"], [], {"old": 0.5}])
    assert graph.attributes == ((("red", 1.0),), (), (("old", 0.5),))
    assert graph.permute([2, 1, 0]).attributes == graph.attributes[::-1]
    assert graph.subset([1]).attributes is None
    assert SceneGraph.from_json(graph.to_json()) == graph


def test_networkx():
    graph = small(relation_scores=[0.1, 0.2, 0.3]).to_networkx()
    assert graph.nodes[1] == {"label": "hat", "box": (2.0, 3.0, 4.0, 5.0), "score": 1.0}
    assert sorted((s, o, d["predicate"], d["score"]) for s, o, d in graph.edges(data=True)) == [
        (0, 1, "wearing", 0.1),
        (0, 1, "wearing", 0.3),
        (1, 0, "on", 0.2),
    ]


def test_relations_may_carry_the_distribution_of_their_pair():
    data = small().to_dict()
    for row in data["relations"]:
        row["distribution"] = [0.25] * 4
    graph = SceneGraph.from_dict(data)
    assert graph.pairs.tolist() == [[0, 1], [1, 0]]
    assert (graph.pair_dist == 0.25).all()
    data["relations"][2]["distribution"] = [1, 0, 0, 0]
    with pytest.raises(GraphError, match="differs from an earlier one"):
        SceneGraph.from_dict(data)


def test_a_graph_costs_at_most_three_times_its_arrays():
    rng = np.random.default_rng(0)
    vocabulary = Vocabulary([f"o{i}" for i in range(150)], [f"p{i}" for i in range(50)])
    count = 2000
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    held = []
    for i in range(count):
        low = rng.uniform(0, 400, (11, 2))
        relations = np.column_stack([rng.integers(0, 11, (6, 2)), rng.integers(0, 50, 6)])
        boxes = np.concatenate([low, low + 20], axis=1)
        held.append(
            SceneGraph(
                boxes, rng.integers(0, 150, 11), vocabulary, relations, image_id=10**6 + i, width=500, height=375
            )
        )
    cost = tracemalloc.get_traced_memory()[0] - before - sys.getsizeof(held)
    tracemalloc.stop()
    raw = sum(g.boxes.nbytes + g.labels.nbytes + g.relations.nbytes for g in held)
    assert cost <= 3 * raw, cost / raw


def test_the_key_is_the_id_or_else_the_file():
    graph = SceneGraph([], [], VOCABULARY)
    given = [{"image_id": 0, "file": "a.jpg"}, {"image_id": "x"}, {"file": "a.jpg"}, {"file": ""}, {}]
    assert [graph.replace(**fields).key for fields in given] == [0, "x", "a.jpg", None, None]
