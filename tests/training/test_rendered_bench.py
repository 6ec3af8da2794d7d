"""The benchmark on rendered scenes in small: parts side by side, from nothing to the tables, and on from there."""

from __future__ import annotations

import json
import math
import os
import sys

import pytest

import rendered
from side_by_side import Parts, shares


@pytest.mark.parametrize("jobs", [1, 2])
def test_pieces_keep_their_order_and_their_time_is_known(jobs, capsys):
    with Parts(jobs) as parts:
        with parts.part("powers"):
            found = parts.map(pow, {"large": (7, 300_000), "small": (2, 5)})
        assert list(found) == ["large", "small"]
        assert found["small"] == 32
        with pytest.raises(ZeroDivisionError):
            parts.map(divmod, {"wrong": (1, 0)}, say=False)
        elsewhere = set(parts.map(os.getpid, {"a": (), "b": ()}, say=False).values()) - {os.getpid()}
        assert bool(elsewhere) == (jobs > 1)
    assert list(parts.spent) == ["powers", "large", "small"]
    assert parts.spent["powers"].worked >= parts.spent["large"].worked > 0
    assert [line.split(" | ")[0] for line in parts.table().splitlines()[2:]] == [
        "| powers",
        "| large",
        "| small",
        "| all",
    ]
    assert "large: " in capsys.readouterr().out


def test_shares_are_even():
    assert shares(range(5), 2) == [[0, 2, 4], [1, 3]]
    assert shares([], 2) == [[], []]


def test_from_nothing_to_tables_and_not_twice(tmp_path, monkeypatch, capsys):
    preset = "gpi-no-attention"
    words = ["--runs", tmp_path / "runs", "--images", 14, "--epochs", 1, 1, "--backbone", "small", "--jobs", 1]
    words += ["--presets", preset, "--json", tmp_path / "found.json"]
    monkeypatch.setattr(sys, "argv", ["rendered.py", *map(str, words)])
    rendered.main()
    said, first = capsys.readouterr().out, json.loads((tmp_path / "found.json").read_text())
    for part in ("draw 14 scenes", "label predictor", "baseline", "presets, and scoring", f"- {preset}", "all"):
        assert f"| {part} | " in said
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
    assert "draw 14" not in capsys.readouterr().out
