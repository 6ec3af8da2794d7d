"""What benchmarks keep in the repository stays small: figures, not logs."""

from __future__ import annotations

import json

from conftest import ROOT

FILES = sorted((ROOT / "benchmarks" / "results").rglob("*"))


def test_results_are_small_json_files():
    kept = [path for path in FILES if path.is_file()]
    assert {path.suffix for path in kept} == {".json"}
    assert sum(path.stat().st_size for path in kept) < 300_000  # one row per line, not one number, saves a quarter
    for path in kept:
        assert json.loads(path.read_text(encoding="utf-8"))
