"""The benchmark on rendered scenes in small: from nothing to the tables, and on from there."""

from __future__ import annotations

import json
import math
import sys

import rendered
from vision.vision_cases import needs_package


@needs_package
def test_from_nothing_to_tables_and_not_twice(tmp_path, monkeypatch, capsys):
    preset = "gpi-no-attention"
    words = ["--runs", tmp_path / "runs", "--images", 14, "--epochs", 1, 1, "--jobs", 1]
    words += ["--presets", preset, "--json", tmp_path / "found.json"]
    monkeypatch.setattr(sys, "argv", ["rendered.py", *map(str, words)])
    rendered.main()
    said, first = capsys.readouterr().out, json.loads((tmp_path / "found.json").read_text())
    assert "14 scenes drawn" in said
    assert "labels right: baseline" in said
    assert set(first["sgcls"]) == {"baseline", preset}
    assert set(first["predcls"]) == {"FREQ", "baseline", preset}
    assert all(math.isfinite(each["figures"]["R@50"]) for task in rendered.TASKS for each in first[task].values())
    models = sorted((tmp_path / "runs").rglob("model.safetensors"))
    made = [path.stat().st_mtime_ns for path in models]
    assert len(models) == 2
    rendered.main()
    assert [path.stat().st_mtime_ns for path in models] == made
    again = json.loads((tmp_path / "found.json").read_text())
    assert {task: again[task] for task in rendered.TASKS} == {task: first[task] for task in rendered.TASKS}
    assert "drawn" not in capsys.readouterr().out.splitlines()[0]
