"""The examples of docs/layers.md run."""

import re
from importlib.util import find_spec
from pathlib import Path


def test_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "docs" / "layers.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        if "scenegpi.onnx" not in block or all(map(find_spec, ("onnx", "onnxruntime"))):
            exec(block, names)
    assert names["out"].edges[-1].shape == (26, 6)
