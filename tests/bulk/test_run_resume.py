"""A run of `scenegpi predict` that was stopped loses nothing, and goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from commands.predict_cases import fine, lines, predictions, refused, scene, sources
from scenegpi.bulk.journal import Journal
from scenegpi.bulk.manifest import Manifest
from scenegpi.bulk.run_folder import LINES, PredictionLog, Row
from scenegpi.data import DataError
from scenegpi.files import MANIFEST
from scenegpi.locks import folder_lock


def test_a_second_run_just_works(tmp_path):
    """The same settings go on in the folder, others take the next free one; --force replaces."""
    first, more = lines(tmp_path / "a.jsonl", scene(1)), lines(tmp_path / "b.jsonl", scene(1), scene(2))
    common = ("--out", tmp_path / "out", "--formats", "none")
    fine("--boxes", first, *common)
    assert "1 image done before" in fine("--boxes", more, *common)
    assert sources(tmp_path / "out") == ["1", "2"]
    for k in (2, 3):
        fine("--boxes", more, *common, "--top", k)
        assert len(predictions(tmp_path / f"out-{k}")) == 2
    assert "2 images done before" in fine("--boxes", more, *common, "--top", 3)
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out", "out-2", "out-3"]
    fine("--boxes", first, *common, "--top", 1, "--force")
    assert [len(graph.relations) for graph in predictions(tmp_path / "out")] == [1]


def test_other_default_floors_answer_anew(tmp_path, monkeypatch):
    """What is shown by default belongs to the answer: a version with other floors does not show what this one did."""
    common = ("--boxes", lines(tmp_path / "a.jsonl", scene(1)), "--out", tmp_path / "out", "--formats", "none")
    fine(*common)
    monkeypatch.setattr("scenegpi.bulk.job.FOUND_PLAIN", 0.5)
    assert "done before" not in fine(*common)
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out", "out-2"]


def test_images_that_share_an_id_are_all_kept(tmp_path):
    """1 and "1", and files of one name in two folders, are four images, also when the run goes on."""
    graphs = [scene(1), scene("1"), scene(None, "train/a.jpg"), scene(None, "valid/a.jpg")]
    out = tmp_path / "out"
    for count in (1, 3, 4, 4):
        boxes = lines(tmp_path / f"{count}.jsonl", *graphs[:count])
        fine("--boxes", boxes, "--out", out, "--formats", "dot")
    assert sources(out) == ["1", "1 (2)", "train/a.jpg", "valid/a.jpg"]
    assert [graph.image_id for graph in predictions(out)] == [1, "1", None, None]
    assert len(list(out.glob("*.dot"))) == 4


def test_images_without_a_name_in_two_files_are_two_images(tmp_path):
    first, second = (lines(tmp_path / f"{name}.jsonl", scene()) for name in "ab")
    for boxes in (first, second, first):
        assert "0: 3 boxes" in fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "dot")
    assert sources(tmp_path / "out") == [f"{first}, image 0", f"{second}, image 0"]
    lines(second, scene(), scene())  # one more, and the other as it was
    assert "1 image done before" in fine("--boxes", second, "--out", tmp_path / "out", "--formats", "dot")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.dot")) == ["0 (2).dot", "0.dot", "1.dot"]


def test_a_folder_has_one_run_at_a_time(tmp_path):
    boxes, out = lines(tmp_path / "boxes.jsonl", scene(1)), tmp_path / "out"
    with folder_lock(out):
        for words in ((), ("--resume",), ("--force",)):
            assert f"in use by process {os.getpid()}" in refused("--boxes", boxes, "--out", out, *words)
        assert not (out / LINES).exists()
    fine("--boxes", boxes, "--out", out, "--formats", "none")
    assert len(predictions(out)) == 1


def test_nothing_is_written_through_a_link(tmp_path):
    boxes, out, victim = lines(tmp_path / "boxes.jsonl", scene(1)), tmp_path / "out", tmp_path / "victim"
    victim.write_text("mine")
    out.mkdir()
    (out / "1.dot").symlink_to(victim)
    (out / "run.json").symlink_to(victim)
    assert "run.json: exists and was not written by this run" in refused("--boxes", boxes, "--out", out)
    fine("--boxes", boxes, "--out", out, "--formats", "dot", "--force")
    assert victim.read_text() == "mine"
    assert (out / "1.dot").read_text().startswith("digraph")
    (out / LINES).unlink()
    (out / LINES).symlink_to(victim)
    assert LINES in refused("--boxes", boxes, "--out", out, "--formats", "dot", "--resume")
    assert victim.read_text() == "mine"


def test_what_a_kill_left_half_written_is_tidied(tmp_path):
    boxes, out = lines(tmp_path / "boxes.jsonl", scene(1)), tmp_path / "out"
    out.mkdir()
    (out / ".1.png.abcd.scenegpi.part").write_text("half")
    fine("--boxes", boxes, "--out", out, "--formats", "dot")
    assert sorted(path.name for path in out.iterdir()) == ["1.dot", MANIFEST, LINES, "run.json"]


@pytest.mark.parametrize("objects", [["a", 3], "man", 7, [""], ["a", "a"], ["\ud800"]])
def test_a_malformed_vocabulary_in_a_resumed_line_is_one_line(tmp_path, objects):
    boxes, out = lines(tmp_path / "boxes.jsonl", scene(1)), tmp_path / "out"
    fine("--boxes", boxes, "--out", out, "--formats", "none")
    data = json.loads((out / LINES).read_text())
    data["vocabulary"]["objects"] = objects
    (out / LINES).write_text(json.dumps(data) + "\n")
    message = refused("--boxes", boxes, "--out", out, "--formats", "none", "--resume")
    assert LINES in message
    assert "vocabulary" in message


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
    assert (" done before" in text) == (cut < len(whole))


def test_resume_does_only_what_is_missing(tmp_path):
    few = lines(tmp_path / "few.jsonl", scene(1), scene(2))
    more = lines(tmp_path / "more.jsonl", scene(0), scene(1), scene(2), scene(3))
    out = tmp_path / "out"
    fine("--boxes", few, "--out", out, "--formats", "none")
    text = fine("--boxes", more, "--out", out, "--formats", "none", "--resume")
    assert "2 images done before" in text
    assert sources(out) == ["1", "2", "0", "3"]
    assert len(predictions(out)) == 4


def test_other_settings_are_refused(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", scene(1))
    fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "none")
    message = refused("--boxes", boxes, "--out", tmp_path / "out", "--resume", "--top", 3)
    assert "options was" in message
    assert "use --force" in message


def test_lines_are_found_again_and_replaced(tmp_path):
    settings = {"scenegpi": "1", "model": "m"}
    with PredictionLog(tmp_path, settings) as log:
        log.append([Row("a", "a", scene(1), "1"), Row("b", "b", scene(2), "2")])
    with PredictionLog(tmp_path, settings) as again:
        assert {source: done.digest for source, done in again.done.items()} == {"a": "1", "b": "2"}
        again.append([Row("c", "c", scene(3), "3"), Row("a", "a", scene(4), "4")])
    data = [json.loads(line) for line in (tmp_path / LINES).read_text().splitlines()]
    assert [(row["source"], row["image"]["id"]) for row in data] == [("b", 2), ("c", 3), ("a", 4)]
    assert [isinstance(row["vocabulary"], dict) for row in data] == [True, False, False]
    with pytest.raises(DataError, match="model was"), PredictionLog(tmp_path, settings | {"model": "other"}):
        pass


@pytest.mark.parametrize("line", ['{"scenegpi": 1}', "not json", '{"source": "x'])
def test_a_complete_damaged_line_is_an_error_and_stays(tmp_path, line):
    settings = {"scenegpi": "1"}
    with PredictionLog(tmp_path, settings) as log:
        log.append([Row("a", "a", scene(1), "1")])
    with (tmp_path / LINES).open("a") as handle:
        handle.write(f"{line}\n")
    before = (tmp_path / LINES).read_bytes()
    with pytest.raises(DataError, match=r"predictions\.jsonl: line 2: damaged"), PredictionLog(tmp_path, settings):
        pass
    assert (tmp_path / LINES).read_bytes() == before


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_lines_that_were_written_stay_when_a_run_stops_right_then(tmp_path, monkeypatch, stop):
    """Stopped after a batch is on the disk and before the log notes it: the lines count."""

    def stopped(*_):
        raise stop

    settings, append = {"scenegpi": "1"}, Journal.append
    monkeypatch.setattr(Journal, "append", lambda *call: stopped(append(*call)))
    monkeypatch.setattr(Manifest, "claim", lambda *_: None)
    with pytest.raises(stop), PredictionLog(tmp_path, settings) as log:
        log.append([Row("a", "a", scene(1), "1")])
    assert [json.loads(line)["source"] for line in (tmp_path / LINES).read_text().splitlines()] == ["a"]


def wait_for_lines(running: subprocess.Popen, out: Path, count: int) -> None:
    """Until a run has written this many lines, or has ended."""
    while running.poll() is None:
        if (out / LINES).exists() and (out / LINES).read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.02)


def test_a_killed_run_goes_on(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", *(scene(i) for i in range(40)))
    out = tmp_path / "out"
    words = ["predict", "--boxes", str(boxes), "--out", str(out), "--formats", "png", "--batch", "1"]
    command = [sys.executable, "-c", "from scenegpi.cli import main; main()", *words]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_lines(running, out, 1)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    done = len((out / LINES).read_bytes().splitlines())
    assert 0 < done < 40
    fine("--boxes", boxes, "--out", out, "--formats", "none", "--resume")
    assert [int(source) for source in sources(out)] == list(range(40))
    assert len(predictions(out)) == 40


def workers_of(pid: int) -> list[int]:
    """Processes that a process started and that are alive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(folder.name))
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found in /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_a_stopped_run_takes_its_workers_along_and_loses_nothing(tmp_path, how):
    boxes = lines(tmp_path / "boxes.jsonl", *(scene(i) for i in range(300)))
    out = tmp_path / "out"
    words = ["predict", "--boxes", str(boxes), "--out", str(out), "--formats", "png", "--batch", "2", "--jobs", "2"]
    command = [sys.executable, "-c", "from scenegpi.cli import main; main()", *words]
    # A shell starts its background jobs deaf to SIGINT, and they pass that on.
    hear = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=hear)
    wait_for_lines(running, out, 3)  # a batch that is being written does not count yet: the second one is there
    workers = workers_of(running.pid)
    assert len(workers) >= 2
    os.kill(running.pid, how)
    _, said = running.communicate(timeout=120)
    assert running.returncode != 0
    assert "Traceback" not in said
    until = time.monotonic() + 60
    while time.monotonic() < until and any(Path(f"/proc/{pid}").exists() for pid in workers):
        time.sleep(0.05)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    if how != signal.SIGKILL:
        assert not list(out.glob(".*.part"))
    done = [json.loads(line)["source"] for line in (out / LINES).read_bytes().split(b"\n")[:-1]]
    assert 0 < len(done) < 300
    assert set(done) <= {path.stem for path in out.glob("*.png")}
    fine("--boxes", boxes, "--out", out, "--formats", "none", "--batch", 50)
    assert [int(source) for source in sources(out)] == list(range(300))
    assert not list(out.glob(".*.part"))
