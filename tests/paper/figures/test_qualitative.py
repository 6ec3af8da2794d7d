"""The qualitative figure: what is called right, corrected and spoiled; which images are picked; the command."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from models.model_cases import predict_graphs, random_graphs, small_model
from scenegpi import SceneGraph, Vocabulary
from scenegpi.cli import app
from scenegpi.data import DataError, open_dataset, sample_path, write_jsonl
from scenegpi.errors import GraphError
from scenegpi.features.batch import SceneBatch
from scenegpi.paper.figures.compare import compare_image, first_stage, pick
from scenegpi.paper.figures.qualitative import draw_qualitative
from scenegpi.prediction import aligned

WORDS = Vocabulary(["man", "dog", "hat"], ["on", "near"])
BOXES = [[0, 0, 50, 50], [20, 20, 90, 90], [60, 5, 99, 40]]


def said(labels, *predicates):
    """A prediction that is sure of one predicate for the pairs (0, 1), (1, 0), (0, 2)."""
    pairs = [[0, 1], [1, 0], [0, 2]]
    dist = np.full((3, 3), 0.05)
    dist[:, 0] = 0.5  # likelier than any predicate, which does not matter here
    dist[np.arange(3), np.array(predicates) + 1] = 0.4
    return SceneGraph(BOXES, labels, WORDS, pairs=pairs, pair_dist=dist, width=100, height=100)


def truth():
    return SceneGraph(BOXES, [0, 1, 2], WORDS, [[0, 1, 0], [0, 1, 1], [1, 0, 1], [2, 2, 0]], width=100, height=100)


def test_what_is_corrected_and_spoiled():
    found = compare_image(truth(), said([0, 1, 0], 0, 0, 0), said([0, 0, 2], 1, 1, 0))
    assert found.pairs.tolist() == [[0, 1], [1, 0]]  # a box and itself are no pair
    assert found.right.tolist() == [[True, False], [True, True]]  # either of two annotated predicates will do
    assert (found.corrected, found.spoiled) == (2, 1)  # a predicate and box 2's label; box 1's label
    back = compare_image(truth(), said([0, 0, 2], 1, 1, 0), said([0, 1, 0], 0, 0, 0))
    assert (back.corrected, back.spoiled) == (1, 2)
    with pytest.raises(GraphError, match="without pair distributions"):
        compare_image(truth(), truth(), truth())


def test_the_rule_by_which_images_are_picked():
    same = compare_image(truth(), said([0, 1, 2], 0, 1, 0), said([0, 1, 2], 0, 1, 0))
    better = compare_image(truth(), said([0, 1, 2], 0, 0, 0), said([0, 1, 2], 0, 1, 0))
    worse = compare_image(truth(), said([0, 1, 2], 0, 1, 0), said([0, 1, 2], 0, 0, 0))
    chosen, totals = pick([same, worse, better, same], 3)
    assert chosen == [2, 1]
    assert totals == {"images": 4, "pairs": 8, "corrected": 1, "spoiled": 1}
    assert pick([same, worse, better], 2)[0] == [2]
    assert pick([same, same, same], 2)[0] == [0, 1]
    assert pick([], 3)[0] == []


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_the_first_stage_is_step_zero_of_the_model(task):
    graphs = random_graphs((4, 6), seed=2)
    model = small_model("gpi-feature-attention")
    found = list(predict_graphs(first_stage(model), graphs, task))
    with torch.no_grad():
        out = model(SceneBatch.of(graphs, given_labels=task == "predcls"))
    want = out.edges[0].softmax(1).numpy()
    assert np.allclose(np.concatenate([graph.pair_dist for graph in found]), want, atol=1e-5)
    assert np.allclose(
        np.concatenate([graph.label_dist for graph in found]), out.nodes[0].softmax(1).numpy(), atol=1e-5
    )
    with pytest.raises(GraphError, match="no context"):
        first_stage(small_model("baseline"))


def test_the_figure_in_both_tasks(tmp_path):
    rows = [
        compare_image(truth(), said([0, 1, 0], 0, 0, 0), said([0, 0, 2], 1, 1, 0)),
        compare_image(truth(), said([0, 1, 2], 0, 0, 0), said([0, 1, 2], 0, 1, 0)),
    ]
    photo = np.full((100, 100, 3), 50, dtype=np.uint8)
    a, b = (draw_qualitative(rows, [photo, None], tmp_path / f"{k}.png").read_bytes() for k in "ab")
    assert a == b
    tree = ElementTree.parse(draw_qualitative(rows[1:], [None], tmp_path / "x.svg", totals=pick(rows, 2)[1]))
    texts = Counter(element.text for element in tree.iter("{http://www.w3.org/2000/svg}text"))
    assert texts["man"] == texts["dog"] == texts["hat"] == 4  # the input, the truth, and what two models say
    assert (texts["✗ on"], texts["✓ near"], texts["✓ on"]) == (1, 1, 2)
    assert texts["1 corrected, 0 spoiled"] == 1


def test_names_that_the_model_does_not_know():
    model = small_model("gpi-feature-attention")
    with pytest.raises(DataError, match=r"sample\.jsonl: image 1: .*'.*', which the model does not know"):
        next(aligned(open_dataset(sample_path()), model.vocabulary))


def test_the_commands(tmp_path):
    run = CliRunner().invoke
    done = run(app, ["figure", "qualitative", "--out", str(tmp_path / "q.png"), "--rows", "2"])
    assert done.exit_code == 0, done.output
    assert "3 images: " in done.output
    assert (tmp_path / "q.png").read_bytes().startswith(b"\x89PNG")
    done = run(app, ["figure", "qualitative", "--out", str(tmp_path / "r.svg"), "--image", "3", "--image", "1"])
    assert done.output.count("corrected") == 2
    done = run(app, ["figure", "attention", "--out", str(tmp_path / "a.png"), "--node", "2", "--image", "2"])
    assert done.exit_code == 0, done.output
    assert "attention of box 2 of image sample-2.jpg" in done.output
    assert isinstance(run(app, ["figure", "attention", "--out", str(tmp_path / "a.gif")]).exception, DataError)
    write_jsonl(tmp_path / "none.jsonl", [SceneGraph([], [], open_dataset(sample_path()).vocabulary, image_id=1)])
    done = run(app, ["figure", "qualitative", "--data", str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "n.png")])
    assert "no image with 2 to 12 boxes" in str(done.exception)


def test_images_without_a_photo_are_passed_over(tmp_path):
    for graph in list(open_dataset(sample_path()))[1:]:
        Image.new("RGB", (graph.width, graph.height), "tan").save(tmp_path / graph.file)
    words = ["--photos", str(tmp_path), "--model", "vg150-photo", "--task", "sgcls", "--rows", "1"]
    done = CliRunner().invoke(app, ["figure", "qualitative", *words, "--out", str(tmp_path / "q.png")])
    assert done.exit_code == 0, done.output
    assert "2 images: " in done.output
