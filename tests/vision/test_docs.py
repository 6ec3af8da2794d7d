"""The Python of docs/vision.md runs and says what is true."""

from __future__ import annotations

import re

import numpy as np

from conftest import ROOT
from vision.vision_cases import needs_package


@needs_package
def test_the_page_runs():
    page = (ROOT / "docs" / "vision.md").read_text()
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) == 3
    for code in blocks:
        exec(compile(code, "vision.md", "exec"), names)
    assert names["dist"].shape == (2, 3)
    np.testing.assert_allclose(names["labelled"].label_dist, names["dist"], atol=1e-5)
    assert len(names["fitted"].held_out) == 10
    assert "top-1" in names["fitted"].figures
