"""ONNX files that nobody vouches for: nothing beside them is opened, nothing in them reaches the terminal, all stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import onnx_export.onnx_cases  # noqa: F401 - skips where the extra is missing
from scenegpi.errors import DataError
from scenegpi.onnx.session import FORMS, Session

onnx = pytest.importorskip("onnx", reason="the extra [onnx] is not installed")
helper = onnx.helper
FLOAT = onnx.TensorProto.FLOAT


def model(nodes, initializers=(), inputs=()) -> onnx.ModelProto:
    """One that says it is ours, with an output y."""
    graph = helper.make_graph(nodes, "g", list(inputs), [helper.make_tensor_value_info("y", FLOAT, None)], initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    helper.set_model_props(made, {"scenegpi": FORMS["layout"]})
    return made


def endless() -> onnx.ModelProto:
    """A loop whose condition stays true."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["x", "x"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", FLOAT, [1]),
        ],
    )
    start = onnx.numpy_helper.from_array(np.array(True), "start")
    given = helper.make_tensor_value_info("v", FLOAT, [1])
    return model([helper.make_node("Loop", ["", "start", "v"], ["y"], body=body)], [start], [given])


RUN = """
import sys
import numpy as np
import onnxruntime
from scenegpi.cli import _behave
from scenegpi.onnx.session import Session
_behave()
session = Session(sys.argv[1], "layout")
print("runs", flush=True)
session.run(["y"], {"v": np.ones(1, np.float32)})
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_endless_loop_is_stopped_by_a_signal(tmp_path, number):
    (tmp_path / "m.onnx").write_bytes(endless().SerializeToString())
    process = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path / "m.onnx")], stdout=subprocess.PIPE, stderr=-3)
    try:
        assert process.stdout.readline().strip() == b"runs"
        process.send_signal(number)
        assert process.wait(timeout=120) != 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("place", ["private.bin", "sub/private.bin"])
def test_external_data_is_refused(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_bytes(np.ones(4, np.float32).tobytes())
    tensor = onnx.TensorProto(data_type=FLOAT, dims=[4], name="w", data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=place)
    made = model([helper.make_node("Identity", ["w"], ["y"])], [tensor])
    with pytest.raises(DataError, match="cannot load it"):
        Session(made.SerializeToString(), "layout").run(["y"], {})


def test_metadata_that_is_not_utf_8_is_one_line():
    made = model([helper.make_node("Identity", ["v"], ["y"])], inputs=[helper.make_tensor_value_info("v", FLOAT, [1])])
    made.metadata_props.add(key="author", value="#####")
    with pytest.raises(DataError, match="metadata is not UTF-8"):
        Session(made.SerializeToString().replace(b"#####", b"\xff\xfe###"), "layout")


def test_names_in_a_file_do_not_reach_the_terminal(capfd):
    name = "a\x1b]0;OWNED\x07\nb"
    nodes = [helper.make_node("Reshape", ["v", "s"], ["y"], name=name)]
    shape = onnx.numpy_helper.from_array(np.array([7], dtype=np.int64), "s")
    made = model(nodes, [shape], [helper.make_tensor_value_info("v", FLOAT, [None])])
    session = Session(made.SerializeToString(), "layout")
    with pytest.raises(DataError) as error:
        session.run(["y"], {"v": np.ones(3, np.float32)})
    assert str(error.value).isprintable()
    assert capfd.readouterr() == ("", "")
    assert os.linesep not in str(error.value)
