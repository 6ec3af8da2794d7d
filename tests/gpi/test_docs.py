"""The examples of docs/layers.md run."""

import re
from pathlib import Path


def test_examples_run():
    text = (Path(__file__).parents[2] / "docs" / "layers.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert names["out"].edges[-1].shape == (26, 6)
