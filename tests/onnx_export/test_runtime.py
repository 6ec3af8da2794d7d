"""A predictor without torch: same answers, same output, one line on files that are no model."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import onnx_export.onnx_cases as cases
from models.model_cases import VOCABULARY, random_graphs
from scenegpi import PredictOptions, Predictor
from scenegpi.cli import app
from scenegpi.data import write_jsonl
from scenegpi.errors import DataError, OptionError
from scenegpi.models import save_model
from scenegpi.onnx.exported import exported_file, forms, kept_file
from scenegpi.onnx.runtime import OnnxModel, open_onnx

NAME = "baseline"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    path.write_bytes(cases.exported_bytes(NAME))
    return path


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_a_predictor_gives_the_same_graphs(file, task):
    graphs = random_graphs((4, 0, 1, 12, 7))
    options = PredictOptions.scoring(task)
    here, there = Predictor(cases.model(NAME), options=options), Predictor(file, options=options)
    for wanted, found in zip(here.stream(graphs), there.stream(graphs), strict=True):
        np.testing.assert_array_equal(found.graph.labels, wanted.graph.labels)
        np.testing.assert_array_equal(found.graph.relations, wanted.graph.relations)
        np.testing.assert_allclose(found.graph.pair_dist, wanted.graph.pair_dist, atol=1e-4)


def test_which_backend_runs_what(file):
    assert open_onnx(cases.exported(NAME)) is cases.exported(NAME)
    with pytest.raises(OptionError, match="ONNX file"):
        Predictor(file, backend="torch")
    with pytest.raises(OptionError, match="not one of torch, onnx"):
        Predictor(file, backend="tensorflow")
    with pytest.raises(OptionError, match="on the CPU"):
        Predictor(file, device="cuda")


def test_a_prediction_does_not_import_torch(file, tmp_path):
    """The command, with a picture, from boxes in a file to graphs in a file; and the same lines as with torch."""
    graphs = [graph.replace(label_dist=None, pairs=None, pair_dist=None) for graph in random_graphs((12, 3), seed=8)]
    write_jsonl(tmp_path / "boxes.jsonl", graphs)
    code = (
        "import sys; from scenegpi.cli import app; "
        "app(sys.argv[1:], standalone_mode=False); print('torch' in sys.modules)"
    )
    arguments = ["predict", "--boxes", "boxes.jsonl", "--model", str(file), "--out", "out", "--formats", "png"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False"
    assert len(list((tmp_path / "out").glob("*.png"))) == 2
    lines = [json.loads(line) for line in (tmp_path / "out" / "predictions.jsonl").read_text().splitlines()]
    predictor = Predictor(cases.model(NAME), options=PredictOptions(max_boxes=64))
    for line, wanted in zip(lines, predictor.stream(graphs), strict=True):
        names = VOCABULARY.predicate_index
        found = [[row["subject"], row["object"], names[row["predicate"]]] for row in line["relations"]]
        assert found == wanted.graph.relations.tolist()
        assert found


def test_a_folder_is_exported_once(tmp_path, monkeypatch, file):
    monkeypatch.setenv("SCENEGPI_CACHE", str(tmp_path / "cache"))
    save_model(cases.model(NAME), tmp_path / "model")
    made = []
    monkeypatch.setattr("scenegpi.onnx.export.model_bytes", lambda model, form: made.append(form) or file.read_bytes())
    first = exported_file(tmp_path / "model")
    assert exported_file(tmp_path / "model") == first
    assert made == ["layout"]
    first.write_bytes(file.read_bytes()[:-1])  # a damaged one is made again
    assert exported_file(tmp_path / "model").read_bytes() == file.read_bytes()
    assert made == ["layout", "layout"]
    assert Predictor(tmp_path / "model", backend="onnx").model.vocabulary == VOCABULARY
    other = cases.small_model(NAME, seed=1)
    save_model(other, tmp_path / "model", overwrite=True)
    assert kept_file(tmp_path / "model") != first


def test_an_export_is_said_before_it_begins_and_done_once(tmp_path, monkeypatch, file):
    monkeypatch.setenv("SCENEGPI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("scenegpi.onnx.export.model_bytes", lambda model, form: file.read_bytes())
    save_model(cases.model(NAME), tmp_path / "model")
    write_jsonl(tmp_path / "boxes.jsonl", [graph.replace(label_dist=None) for graph in random_graphs((3,))])
    words = ["predict", "--boxes", "boxes.jsonl", "--model", "model", "--backend", "onnx", "--formats", "none"]
    monkeypatch.chdir(tmp_path)
    said = []
    for _ in range(3):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        said.append("exporting model (layout) for onnxruntime; this is done once" in done.output)
        if len(said) == 2:  # a damaged file is exported again
            kept_file(tmp_path / "model").write_bytes(b"damaged")
    assert said == [True, False, True]


def test_borrowed_weights_are_part_of_what_a_file_is_kept_by(tmp_path, monkeypatch):
    folder, lender = tmp_path / "model", tmp_path / "vg150-photo"
    config = {"model": {"vision": {"features": {"backbone": "vg150-photo"}}}}
    for path in (folder, lender):
        path.mkdir()
        (path / "config.json").write_text(json.dumps(config))
        (path / "vocabulary.json").write_text("{}")
        (path / "model.safetensors").write_bytes(b"1")
    monkeypatch.setattr("scenegpi.onnx.exported.shipped_models", lambda: {"vg150-photo": lender})
    assert forms(folder) == ("layout", "photo")
    first = kept_file(folder, "photo")
    (lender / "model.safetensors").write_bytes(b"2")
    assert kept_file(folder, "photo") != first
    assert kept_file(folder, "layout") != kept_file(folder, "photo")
    config["model"]["vision"]["features"]["backbone"] = "hf:checkpoint"
    (folder / "config.json").write_text(json.dumps(config))
    assert forms(folder) == ("layout", "find")


def test_files_that_are_no_model(tmp_path, file):
    import onnx

    path = tmp_path / "bad.onnx"
    for data in (b"", b"nothing", file.read_bytes()[:1000]):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"bad\.onnx"):
            OnnxModel(path)
    proto = onnx.load(file)
    about = {entry.key: entry for entry in proto.metadata_props}
    for key, value, message in (
        ("scenegpi", "layout 999", "exported"),
        ("vocabulary", "{", "metadata"),
        ("vocabulary", json.dumps({"objects": ["a"], "predicates": ["b"]}), "columns"),
        ("relation_counts", json.dumps({"labels": 5}), "metadata"),
        (
            "relation_counts",
            json.dumps({"labels": 1, "shares": [1.0], "as_subject": "gA==", "as_object": "gA=="}),
            "of",
        ),
    ):
        before = about[key].value
        about[key].value = value
        path.write_bytes(proto.SerializeToString())
        with pytest.raises(DataError, match=message):
            OnnxModel(path)
        about[key].value = before
    with pytest.raises(DataError, match=r"absent\.onnx"):
        OnnxModel(tmp_path / "absent.onnx")


def test_a_file_that_refers_to_others_is_refused(tmp_path, file):
    import onnx

    proto = onnx.load(file)
    onnx.save(proto, tmp_path / "split.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    with pytest.raises(DataError, match="cannot load"):
        OnnxModel(tmp_path / "split.onnx")


@pytest.mark.parametrize(
    ("pairs", "value", "said"),
    [(1, 0.25, "expected 6 rows"), (6, 1e30, "not probabilities"), (6, float("nan"), "not probabilities")],
)
def test_a_graph_that_gives_something_else_is_refused(tmp_path, file, pairs, value, said):
    """A file with our metadata and another graph: labels as they came, and relations that are none."""
    import onnx
    from onnx import TensorProto, helper

    labels, classes = len(VOCABULARY.objects), 1 + len(VOCABULARY.predicates)
    rows = helper.make_tensor("value", TensorProto.FLOAT, [pairs, classes], [value] * pairs * classes)
    graph = helper.make_graph(
        [
            helper.make_node("Identity", ["label_dist"], ["labels"]),
            helper.make_node("Constant", [], ["relations"], value=rows),
        ],
        "other",
        [helper.make_tensor_value_info("label_dist", TensorProto.FLOAT, ["boxes", labels])],
        [
            helper.make_tensor_value_info("labels", TensorProto.FLOAT, ["boxes", labels]),
            helper.make_tensor_value_info("relations", TensorProto.FLOAT, [None, classes]),
        ],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    proto.metadata_props.extend(onnx.load(file).metadata_props)
    (tmp_path / "other.onnx").write_bytes(proto.SerializeToString())
    predictor = Predictor(tmp_path / "other.onnx")
    with pytest.raises(DataError, match=rf"other\.onnx: relations: .*{said}"):
        list(predictor.stream(random_graphs((3,))))
