"""Two runs, image by image."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from scenegpi import SceneGraph
from scenegpi.cli import app
from scenegpi.data import DataError, write_jsonl
from scenegpi.evaluation.changes import changes, compared
from scenegpi.graph_json import to_dict
from scenegpi.models.shipped import model_vocabulary
from strategies import VOCABULARY, small


def other(**fields):
    """`small` in another order of its boxes, without its first relation and with a new one."""
    graph = small(**fields)
    return graph.replace(relations=[*graph.relations[1:].tolist(), [2, 1, 0]]).permute([2, 0, 1])


def test_a_graph_is_the_same_in_any_order():
    assert compared("7", small(), small().permute([2, 0, 1])).size == 0
    change = compared("7", small(), other())
    assert change.same == 2
    assert change.only_a == (("man", "wearing", "hat"),)
    assert change.only_b == (("man", "on", "hat"),)
    moved = small(boxes=[[0, 0, 10, 20], [200, 300, 400, 500], [1, 1, 1, 9]])
    assert compared("7", small(), moved).same == 0


def test_runs_are_matched_by_their_images(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [small(image_id=k) for k in (1, 2, 3)])
    (tmp_path / "run").mkdir()
    write_jsonl(tmp_path / "run" / "predictions.jsonl", [other(image_id=2), small(image_id=3), small(image_id=4)])
    found = changes(tmp_path / "a.jsonl", tmp_path / "run")
    assert (found.images, found.alone, found.same) == (2, (1, 1), 5)
    assert [change.key for change in found.most] == ["2"]
    write_jsonl(tmp_path / "b.jsonl", [small(image_id=9)])
    with pytest.raises(DataError, match="has no image"):
        changes(tmp_path / "a.jsonl", tmp_path / "b.jsonl")


def test_images_that_share_a_name_are_not_mixed_up(tmp_path):
    """Photos of one name in two folders are told apart in runs, whatever their order; elsewhere they are refused."""
    one, two = small(image_id=None, file="p.jpg"), other(image_id=None, file="p.jpg")
    rows = [to_dict(one) | {"source": "/a/p.jpg"}, to_dict(two) | {"source": "/b/p.jpg"}]
    for name, some in (("a.jsonl", rows), ("b.jsonl", rows[::-1])):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in some))
    found = changes(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert (found.images, found.alone, found.same, found.most) == (2, (0, 0), 6, [])
    write_jsonl(tmp_path / "c.jsonl", [one, two])
    with pytest.raises(DataError, match=r"c.jsonl: image 'p.jpg' is duplicated"):
        changes(tmp_path / "c.jsonl", tmp_path / "c.jsonl")


def test_frames_are_matched_by_their_numbers(tmp_path):
    frames = [
        to_dict(make(image_id=None)) | {"source": f"clip.mp4, frame {k}"} for k, make in enumerate((small, other))
    ]
    for name, some in (("a.jsonl", frames), ("b.jsonl", frames[1:])):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in some))
    found = changes(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert (found.images, found.alone, found.most) == (1, (1, 0), [])
    write_jsonl(tmp_path / "c.jsonl", [small(image_id=None)])  # without sources, by position
    assert changes(tmp_path / "a.jsonl", tmp_path / "c.jsonl").most == []


def test_the_command_prints_paired_figures_and_writes_a_page(tmp_path):
    worse = small().replace(relations=[[1, 0, 2]], relation_scores=[0.5], scores=[1, 1, 1])
    truth = [small(image_id=k) for k in range(4)]
    write_jsonl(tmp_path / "truth.jsonl", truth)
    write_jsonl(tmp_path / "a.jsonl", [worse.replace(image_id=k) for k in range(4)])
    write_jsonl(
        tmp_path / "b.jsonl", [small(image_id=k, scores=[1, 1, 1], relation_scores=[1, 1, 1]) for k in range(4)]
    )
    words = ["a.jsonl", "b.jsonl", "--data", "truth.jsonl", "--out", "page.html"]
    done = CliRunner().invoke(app, ["compare", *(w if w.startswith("-") else str(tmp_path / w) for w in words)])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "only in b.jsonl, by predicate: wearing 8, on 4" in done.output
    assert "+100.00" in done.output
    page = (tmp_path / "page.html").read_text()
    assert page.count("<section>") == 4
    assert VOCABULARY.objects[0] in page


def test_two_models_on_the_same_images(tmp_path):
    words = model_vocabulary("vg150-layout")
    link = (0, 1, words.predicates.index("riding"))
    graph = SceneGraph([[0, 0, 50, 90], [10, 60, 90, 99]], ["man", "horse"], words, [link], width=100, height=100)
    truth = [graph.replace(image_id=k) for k in range(2)]
    write_jsonl(tmp_path / "truth.jsonl", truth)
    options = ["--data", str(tmp_path / "truth.jsonl"), "--task", "predcls", "--out", str(tmp_path / "page.html")]
    done = CliRunner().invoke(app, ["compare", "vg150-layout", "vg150-photo", *options])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "2 images in both; 0 only in vg150-layout" in done.output
    assert "vg150-photo against vg150-layout, PredCls" in done.output
    done = CliRunner().invoke(app, ["compare", "vg150-layout", "vg150-photo"])
    assert "a model needs images" in str(done.exception)
