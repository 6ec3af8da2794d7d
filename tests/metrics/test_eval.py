"""`scenegpi eval`: scores files, writes JSON whole or not at all, and says in one line what is wrong."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from metrics.metrics_brute_force import brute_force, harmonic
from metrics.metrics_cases import PREDICATES, npz_arrays, npz_as_dicts
from scenegpi import SceneGraph, Vocabulary
from scenegpi.commands.eval import eval_command
from scenegpi.data import DataError, write_jsonl
from scenegpi.data.evaluation_npz import EvaluationNpz
from scenegpi.evaluation import evaluate_file
from scenegpi.metrics import Protocol, scene_graph_recall

app = typer.Typer()
app.command("eval")(eval_command)
VOCABULARY = Vocabulary(["man", "horse", "hat"], ["riding", "wearing", "near"], "toy")


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200", "TERM": "dumb"})


def graphs(count=4):
    """Ground truth, and predictions that hold all pairs."""
    rng = np.random.default_rng(0)
    truth, found = [], []
    for i in range(count):
        boxes = np.array([[0, 0, 50, 50], [10, 10, 90, 90], [5, 0, 20, 20]]) + i
        rows = [[0, 1, 0], [0, 2, 1]] if i % 2 else [[2, 1, 2]]
        truth.append(SceneGraph(boxes, [0, 1, 2], VOCABULARY, rows, image_id=100 + i, width=200, height=200))
        pairs = np.array([(a, b) for a in range(3) for b in range(3) if a != b])
        dist = rng.dirichlet(np.ones(4), len(pairs))
        found.append(
            SceneGraph(
                boxes, [0, 1, 2], VOCABULARY, pairs=pairs, pair_dist=dist, image_id=100 + i, width=200, height=200
            )
        )
    return truth, found


@pytest.fixture
def files(tmp_path):
    truth, found = graphs()
    write_jsonl(tmp_path / "truth.jsonl", truth)
    write_jsonl(tmp_path / "found.jsonl", found[::-1])
    np.savez(tmp_path / "case.npz", **npz_arrays(1, 8))
    return tmp_path


def test_npz_to_json(files):
    out = files / "deep" / "out.json"
    done = run(files / "case.npz", "--task", "sgcls", "--json", out, "--k", "3,10", "--bootstrap", "20")
    assert done.exit_code == 0, done.output
    assert "ngmR" in done.output
    assert f"Wrote {out}" in done.output
    data = json.loads(out.read_text())
    arrays = npz_arrays(1, 8)
    unseen = set(map(tuple, arrays["zeroshot"].tolist()))
    case = (*npz_as_dicts(arrays, "sgcls"), "sgcls", (3, 10), PREDICATES, unseen)
    zero, skip = brute_force(*case, "zero"), brute_force(*case, "skip")
    field = {name: (zero if name.removeprefix("pooled-").startswith(("R@", "ngR@")) else skip)[name] for name in zero}
    field |= {f"F1@{k}": harmonic(field[f"R@{k}"], field[f"mR@{k}"]) for k in (3, 10)}
    assert {name: data["figures"][name] for name in field} == pytest.approx(field, abs=1e-12, nan_ok=True)
    assert 0 < data["figures"]["R@3"] < data["figures"]["ngR@10"] < 1
    assert data["task"] == data["protocol"]["task"] == "sgcls"
    assert set(data["by_convention"]) == {"empty_prediction_scores_zero", "empty_prediction_skipped"}
    assert data["counts"]["images_without_predictions"] == 1
    assert data["by_convention"]["empty_prediction_scores_zero"]["mR@3"] == pytest.approx(zero["mR@3"], abs=1e-12)
    assert data["by_convention"]["empty_prediction_skipped"]["R@3"] == pytest.approx(skip["R@3"], abs=1e-12)
    assert zero["R@3"] < skip["R@3"]
    assert [file.name for file in out.parent.iterdir()] == ["out.json"]


@pytest.mark.parametrize("empty", ["zero", "skip"])
def test_convention_by_option(files, empty):
    out = files / "out.json"
    assert run(files / "case.npz", "--task", "sgdet", "--json", out, "--empty", empty).exit_code == 0
    data = json.loads(out.read_text())
    name = "empty_prediction_scores_zero" if empty == "zero" else "empty_prediction_skipped"
    assert data["figures"] == pytest.approx(data["by_convention"][name], abs=1e-12)
    assert data["protocol"]["empty"] == empty


def test_json_lines_with_data(files):
    out = files / "out.json"
    truth, found = graphs()
    done = run(files / "found.jsonl", "--data", files / "truth.jsonl", "--task", "predcls", "--k", 1, "--json", out)
    assert done.exit_code == 0, done.output
    expected = scene_graph_recall(found, truth, Protocol(ks=(1,)))
    assert json.loads(out.read_text())["figures"] == pytest.approx(expected.figures)


def test_training_data_gives_zero_shot_and_groups(files):
    truth, _ = graphs(1)
    write_jsonl(files / "train.jsonl", truth)
    result = evaluate_file(
        files / "found.jsonl", Protocol(ks=(2,)), data=files / "truth.jsonl", train=files / "train.jsonl", bootstrap=0
    )
    assert result.counts["zero_shot_relations"] == 4
    assert {"zR@2", "head-mR@2", "body-mR@2", "tail-mR@2"} <= set(result.figures)


def test_names_decide_not_numbers(files):
    """Predictions of a tool with its classes and predicates in another order."""
    truth, found = graphs()
    other = Vocabulary(["hat", "man", "horse", "dog"], ["near", "riding", "wearing"])
    moved = [
        SceneGraph(
            graph.boxes,
            [1, 2, 0],
            other,
            pairs=graph.pairs,
            pair_dist=graph.pair_dist[:, [0, 3, 1, 2]],
            image_id=graph.image_id,
        )
        for graph in found
    ]
    write_jsonl(files / "moved.jsonl", moved)
    result = evaluate_file(files / "moved.jsonl", Protocol(ks=(1, 2)), data=files / "truth.jsonl", bootstrap=0)
    assert result.figures == pytest.approx(scene_graph_recall(found, truth, Protocol(ks=(1, 2))).figures)


def test_against_another_system_and_beside_published_figures(files):
    arrays = npz_arrays(1, 8)
    rng = np.random.default_rng(0)
    arrays["rel_scores"] = rng.dirichlet(np.ones(7), len(arrays["rel_scores"]))
    np.savez(files / "random.npz", **arrays)
    out = files / "out.json"
    case = [files / "case.npz", "--task", "predcls", "--json", out, "--k", "3,50", "--published"]
    done = run(*case, "--against", files / "random.npz")
    assert done.exit_code == 0, done.output
    assert "GPI, linguistic" in done.output
    assert "difference" in done.output
    found = json.loads(out.read_text())["against"]["differences"]
    ours, theirs = (
        evaluate_file(files / name, Protocol(ks=(3, 50)), bootstrap=0).figures["R@3"]
        for name in ("case.npz", "random.npz")
    )
    assert abs(found["R@3"]["difference"]) == pytest.approx(abs(ours - theirs), abs=1e-12)
    assert ours > theirs
    assert found["R@3"]["low"] < found["R@3"]["difference"] < found["R@3"]["high"]
    np.savez(files / "other.npz", **npz_arrays(2, 8))
    refused([*case, "--against", files / "other.npz"], "other.npz: compare: different images")


def refused(arguments, *words):
    """The command ends in a DataError, which the command line turns into one line and exit code 2."""
    done = run(*arguments)
    assert isinstance(done.exception, DataError), done.output
    text = str(done.exception)
    assert "\n" not in text
    for word in words:
        assert str(word) in text


def test_missing_and_unknown_images(files):
    truth, found = graphs()
    write_jsonl(files / "some.jsonl", found[:2])
    some = [files / "some.jsonl", "--data", files / "truth.jsonl", "--task", "predcls"]
    refused(some, "some.jsonl: no prediction for 2 of 4 images, the first is image '102'")
    allowed = run(*some, "--allow-missing")
    assert allowed.exit_code == 0
    assert "2 of 4 images have relations but no predictions" in allowed.output
    write_jsonl(files / "few.jsonl", truth[:3])
    refused([files / "found.jsonl", "--data", files / "few.jsonl", "--task", "predcls"], "image '103' is not in")
    write_jsonl(files / "twice.jsonl", [found[0], found[0]])
    refused([files / "twice.jsonl", "--data", files / "truth.jsonl", "--task", "predcls"], "'100' is predicted twice")


def test_wrong_sizes_and_unknown_labels(files):
    _, found = graphs()
    write_jsonl(files / "short.jsonl", [found[0].subset([0, 1]), *found[1:]])
    refused(
        [files / "short.jsonl", "--data", files / "truth.jsonl", "--task", "sgcls"],
        "short.jsonl: image 100: boxes: SGCls gives 3 boxes, the prediction has 2",
    )
    other = Vocabulary(["man", "zebra", "hat"], VOCABULARY.predicates)
    write_jsonl(files / "zebra.jsonl", [found[0].replace(vocabulary=other), *found[1:]])
    refused([files / "zebra.jsonl", "--data", files / "truth.jsonl", "--task", "sgcls"], "image '100'", "'zebra'")


def test_usage_errors(files):
    refused([files / "found.jsonl", "--task", "predcls"], "--data")
    refused([files / "case.npz", "--task", "predcls", "--data", files], "own ground truth")
    refused([files / "none.npz", "--task", "predcls"], "none.npz")
    refused([files / "found.jsonl", "--task", "predcls", "--data", files / "none"], "none: no such file")
    for option, value in (("--k", "20,x"), ("--k", "0"), ("--per-pair", "-1"), ("--iou", "2")):
        done = run(files / "case.npz", "--task", "predcls", option, value)
        assert done.exit_code == 2
        assert "Traceback" not in done.output
    refused([files / "case.npz", "--task", "predcls", "--json", files], "is a directory")
    assert run(files / "case.npz", "--task", "detect").exit_code == 2


NPZ_DEFECTS = {
    "no array": lambda a: a.pop("gt_rels"),
    "offsets decrease": lambda a: a["rel_ptr"].__setitem__(3, 10**6),
    "offsets end early": lambda a: a.update(gt_box_ptr=a["gt_box_ptr"][:-1]),
    "one offset too many": lambda a: a.update(gt_rel_ptr=np.append(a["gt_rel_ptr"], a["gt_rel_ptr"][-1])),
    "negative offset": lambda a: a["gt_rel_ptr"].__setitem__(1, -4),
    "float offsets": lambda a: a.update(rel_ptr=a["rel_ptr"] + 0.5),
    "box index": lambda a: a["gt_rels"].__setitem__((0, 1), 99),
    "negative pair": lambda a: a["rel_pairs"].__setitem__((0, 0), -1),
    "predicate 0": lambda a: a["gt_rels"].__setitem__((0, 2), 0),
    "predicate above": lambda a: a["gt_rels"].__setitem__((0, 2), 7),
    "class 0": lambda a: a["gt_classes"].__setitem__(0, 0),
    "class of a billion": lambda a: a["pred_classes"].__setitem__(0, 10**9),
    "class too large for 32 bits": lambda a: a["gt_classes"].__setitem__(0, 2**40),
    "nan": lambda a: a["rel_scores"].__setitem__((2, 1), np.nan),
    "infinite box": lambda a: a["gt_boxes"].__setitem__((0, 0), np.inf),
    "box upside down": lambda a: a["pred_boxes"].__setitem__(0, [9, 9, 0, 0]),
    "text": lambda a: a.update(obj_scores=np.array(["a"] * len(a["obj_scores"]))),
    "complex": lambda a: a.update(rel_scores=a["rel_scores"].astype(complex)),
    "flat scores": lambda a: a.update(rel_scores=a["rel_scores"].ravel()),
    "one column": lambda a: a.update(rel_scores=a["rel_scores"][:, :1]),
    "short scores": lambda a: a.update(obj_scores=a["obj_scores"][:-1]),
    "short boxes": lambda a: a.update(pred_boxes=a["pred_boxes"][:-1]),
    "two-dimensional classes": lambda a: a.update(gt_classes=a["gt_classes"][:, None]),
    "zero-shot of two columns": lambda a: a.update(zeroshot=a["zeroshot"][:, :2]),
    "zero-shot predicate": lambda a: a["zeroshot"].__setitem__((0, 2), 50),
    "zero-dimensional": lambda a: a.update(gt_boxes=np.array(3.0)),
    "not distributions": lambda a: a.update(rel_scores=a["rel_scores"] * 2),
    "a score above one": lambda a: a["obj_scores"].__setitem__(0, 3.0),
    "a pair twice": lambda a: a["rel_pairs"].__setitem__(1, a["rel_pairs"][0]),
}


@pytest.mark.parametrize("defect", NPZ_DEFECTS)
def test_damaged_npz_is_one_clear_line(tmp_path, defect):
    arrays = npz_arrays(1, 8)
    NPZ_DEFECTS[defect](arrays)
    np.savez(tmp_path / "bad.npz", **arrays)
    refused([tmp_path / "bad.npz", "--task", "sgdet"], "bad.npz: ")


def test_objects_in_npz_are_not_unpickled(tmp_path):
    arrays = npz_arrays(1, 8)
    arrays["gt_boxes"] = np.array([print, None], dtype=object)
    np.savez(tmp_path / "bad.npz", **arrays)
    refused([tmp_path / "bad.npz", "--task", "predcls"], "gt_boxes", "Python objects")


def test_declared_sizes_are_checked_before_memory_is_taken(tmp_path):
    """A small file that declares a terabyte."""
    np.savez(tmp_path / "good.npz", **npz_arrays(1, 8))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (2**32, 64)})
    with zipfile.ZipFile(tmp_path / "good.npz") as old, zipfile.ZipFile(tmp_path / "bomb.npz", "w") as new:
        for name in old.namelist():
            new.writestr(name, header.getvalue() if name == "rel_scores.npy" else old.read(name))
    with pytest.raises(DataError, match=r"rel_scores: .* the file holds only"):
        EvaluationNpz(tmp_path / "bomb.npz", "predcls")


@settings(max_examples=60)
@given(st.data())
def test_bytes_gone_wrong_never_end_in_a_traceback(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "fuzz.npz"
    np.savez_compressed(path, **npz_arrays(1, 6))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    for _ in range(data.draw(st.integers(0, 4))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with contextlib.suppress(DataError):
        evaluate_file(path, Protocol("sgdet"), bootstrap=0)


def test_given_boxes_must_be_as_many(tmp_path):
    arrays = npz_arrays(1, 8)
    arrays["pred_box_ptr"][1] -= 1
    np.savez(tmp_path / "bad.npz", **arrays)
    refused([tmp_path / "bad.npz", "--task", "sgcls"], "image 0: sgcls gives")


def test_predictions_on_photos_of_another_size_than_the_annotated_images(tmp_path):
    words = Vocabulary(["man", "horse"], ["riding"])
    boxes = np.array([[20, 10, 60, 50], [10, 30, 90, 90]], dtype=float)
    truth = SceneGraph(boxes, [0, 1], words, [(0, 1, 0)], image_id=1, width=100, height=100)
    scored = truth.replace(scores=[1, 1], relation_scores=[1])
    write_jsonl(tmp_path / "truth.jsonl", [truth])
    for name, found in {
        "same": scored,
        "stretched": scored.replace(boxes=boxes * ([2, 0.5] * 2), width=200, height=50),
        "unknown": scored.replace(width=None, height=None),
    }.items():
        write_jsonl(tmp_path / f"{name}.jsonl", [found])
        result = evaluate_file(tmp_path / f"{name}.jsonl", Protocol("sgdet"), data=tmp_path / "truth.jsonl")
        assert result.figures["R@20"] == 1, name
