"""A predictor without torch: same answers, same output, one line on files that are no model."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import onnx_export.onnx_cases as cases
from models.model_cases import VOCABULARY, random_graphs
from scenegpi import PredictOptions, Predictor
from scenegpi.data import write_jsonl
from scenegpi.errors import DataError, OptionError
from scenegpi.onnx.runtime import OnnxModel

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


def test_a_file_runs_on_the_cpu(file):
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
