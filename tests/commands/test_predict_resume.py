"""A run of `scenegpi predict` that was stopped loses nothing, and goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from commands.predict_cases import fine, lines, predictions, refused, scene, sources
from scenegpi.commands.predict_output import LINES, PredictionLog
from scenegpi.data import DataError


def test_what_is_there_is_not_touched_without_a_word(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", scene(1))
    fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "none")
    assert "--resume goes on with it, --force replaces it" in refused("--boxes", boxes, "--out", tmp_path / "out")
    fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "none", "--force")
    assert len(predictions(tmp_path / "out")) == 1


@pytest.mark.parametrize("cut", [1, 20, 10_000_000])
def test_a_torn_line_is_done_again(tmp_path, cut):
    """However much of the end is lost, the next run gives what one whole run would."""
    boxes = lines(tmp_path / "boxes.jsonl", *(scene(i) for i in range(4)))
    out = tmp_path / "out"
    fine("--boxes", boxes, "--out", out, "--formats", "none", "--batch", 2)
    whole, graphs = (out / LINES).read_bytes(), predictions(out)
    (out / LINES).write_bytes(whole[: max(len(whole) - cut, 0)])
    text = fine("--boxes", boxes, "--out", out, "--formats", "none", "--resume")
    assert sources(out) == ["0", "1", "2", "3"]
    for a, b in zip(graphs, predictions(out), strict=True):
        assert a.relations.tolist() == b.relations.tolist()
        assert np.allclose(a.relation_scores, b.relation_scores, atol=1e-5)
    assert (" there already" in text) == (cut < len(whole))


def test_resume_does_only_what_is_missing(tmp_path):
    few = lines(tmp_path / "few.jsonl", scene(1), scene(2))
    more = lines(tmp_path / "more.jsonl", scene(0), scene(1), scene(2), scene(3))
    out = tmp_path / "out"
    fine("--boxes", few, "--out", out, "--formats", "none")
    text = fine("--boxes", more, "--out", out, "--formats", "none", "--resume")
    assert "2 images there already" in text
    assert sources(out) == ["1", "2", "0", "3"]
    assert len(predictions(out)) == 4


def test_other_settings_are_refused(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", scene(1))
    fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "none")
    message = refused("--boxes", boxes, "--out", tmp_path / "out", "--resume", "--top", 3)
    assert "choices was" in message
    assert "use --force" in message


def test_a_foreign_line_ends_what_is_kept(tmp_path):
    log = PredictionLog(tmp_path, {"model": "m"})
    log.append([("a", "a", scene(1)), ("b", "b", scene(2))])
    with (tmp_path / LINES).open("a") as handle:
        handle.write('{"scenegpi": 1}\nnot json\n')
    again = PredictionLog(tmp_path, {"model": "m"}, resume=True)
    assert again.done == {"a", "b"}
    again.append([("c", "c", scene(3))])
    data = [json.loads(line) for line in (tmp_path / LINES).read_text().splitlines()]
    assert [row["source"] for row in data] == ["a", "b", "c"]
    assert isinstance(data[0]["vocabulary"], dict)
    assert isinstance(data[2]["vocabulary"], str)
    with pytest.raises(DataError, match="model was"):
        PredictionLog(tmp_path, {"model": "other"}, resume=True)


def test_a_killed_run_goes_on(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", *(scene(i) for i in range(40)))
    out = tmp_path / "out"
    words = ["predict", "--boxes", str(boxes), "--out", str(out), "--formats", "png", "--batch", "1"]
    command = [sys.executable, "-c", "from scenegpi.cli import main; main()", *words]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 300  # importing torch takes a minute on a crowded machine
    while time.monotonic() < until and (not (out / LINES).exists() or not (out / LINES).stat().st_size):
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    done = len((out / LINES).read_bytes().splitlines())
    assert 0 < done < 40
    fine("--boxes", boxes, "--out", out, "--formats", "none", "--resume")
    assert [int(source) for source in sources(out)] == list(range(40))
    assert len(predictions(out)) == 40
