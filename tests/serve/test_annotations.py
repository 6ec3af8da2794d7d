"""Annotations: saved before they are called saved, kept through kill -9, exported to what trains."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scenegpi import SceneGraph, Vocabulary
from scenegpi.data import open_dataset
from scenegpi.errors import DataError
from scenegpi.serve.annotations import JOURNAL, Annotations
from serve.serve_cases import call, scenes

WORDS = Vocabulary(["man", "horse"], ["riding", "near"])


def scene(predicate="riding", image_id="a") -> SceneGraph:
    return SceneGraph(
        [[0, 0, 5, 5], [2, 2, 9, 9]],
        ["man", "horse"],
        WORDS,
        [(0, 1, predicate)],
        image_id=image_id,
        width=10,
        height=10,
    )


def test_what_was_saved_is_there_again(tmp_path):
    with Annotations(tmp_path / "a") as kept:
        kept.save("a", scene(), False, 1)
        kept.save("b", scene(image_id="b"), True, 1)
        kept.save("a", scene("near"), True, 2)
        assert kept.counts() == (2, 2, 2)
    with Annotations(tmp_path / "a") as again:
        assert again.states["a"].graph == scene("near")
        assert again.states["a"].revision == 2
        assert (tmp_path / "a" / JOURNAL).read_text().count("\n") == 2  # only the newest of each
        with pytest.raises(DataError, match="in use"), Annotations(tmp_path / "a"):
            pass


def test_an_older_state_never_replaces_a_newer_one(tmp_path):
    with Annotations(tmp_path / "a") as kept:
        kept.save("a", scene("near"), False, 5)
        assert kept.save("a", scene("riding"), False, 5).graph == scene("near")
        assert kept.save("a", scene("riding"), False, 4).revision == 5


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_a_line_that_was_cut_short_costs_only_itself(tmp_path, cut):
    with Annotations(tmp_path / "a") as kept:
        kept.save("a", scene(), False, 1)
        kept.save("b", scene(image_id="b"), False, 1)
    path = tmp_path / "a" / JOURNAL
    path.write_bytes(path.read_bytes()[:-cut])
    with Annotations(tmp_path / "a") as again:
        assert set(again.states) == ({"a", "b"} if cut == 1 else {"a"})
        again.save("c", scene(image_id="c"), False, 1)
    with Annotations(tmp_path / "a") as third:
        assert "c" in third.states


def test_damage_in_the_middle_is_an_error_and_not_a_loss(tmp_path):
    with Annotations(tmp_path / "a") as kept:
        for key in "abc":
            kept.save(key, scene(image_id=key), False, 1)
    path = tmp_path / "a" / JOURNAL
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], lines[1][:50], *lines[2:]]))
    before = path.read_bytes()
    with pytest.raises(DataError, match="line 2"), Annotations(tmp_path / "a"):
        pass
    assert path.read_bytes() == before


def test_a_long_journal_is_written_anew(tmp_path):
    with Annotations(tmp_path / "a") as kept:
        for revision in range(1, 1200):
            kept.save("a", scene(), False, revision)
        assert (tmp_path / "a" / JOURNAL).read_text().count("\n") < 300
        kept.save("a", scene("near"), True, 5000)
    with Annotations(tmp_path / "a") as again:
        assert again.states["a"].revision == 5000


@pytest.fixture
def started(tmp_path):
    """A server in a process of its own, that can be killed."""
    data = scenes(tmp_path / "scenes", 3)
    processes = []

    def start():
        code = f"from scenegpi.cli import main; import sys; sys.argv = ['scenegpi', 'serve', {str(data)!r}, '--annotations', {str(tmp_path / 'notes')!r}, '--port', '0', '--no-open']; main()"
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        processes.append(process)
        url = re.search(r"http://\S+", process.stdout.readline()).group().rstrip("/")
        for _ in range(2000):
            try:
                call(f"{url}/health")
                break
            except OSError:
                pass
        return url, process

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_kill_9_loses_nothing_that_was_saved(started):
    url, process = started()
    graph = call(f"{url}/api/images/0")[1]["graph"]
    for revision in range(1, 6):
        graph["relations"] = graph["relations"][: revision % 3]
        status, said, _ = call(f"{url}/api/annotations/0", {"graph": graph, "revision": revision}, "PUT")
        assert (status, said["revision"]) == (200, revision)
    process.send_signal(signal.SIGKILL)
    process.wait()
    url, _ = started()
    kept = call(f"{url}/api/annotations/0")[1]
    assert kept["revision"] == 5
    assert len(kept["graph"]["relations"]) == len(graph["relations"])
    assert call(f"{url}/api/annotations")[1]["images"] == 1


def test_exports_read_back_and_train(server, tmp_path):
    from scenegpi.training import train
    from training.training_cases import small_config

    total = call(f"{server}/api/images")[1]["total"]
    for number in range(total):
        graph = call(f"{server}/api/images/{number}")[1]["graph"]
        status, said, _ = call(
            f"{server}/api/annotations/{number}", {"graph": graph, "done": number > 0, "revision": 1}, "PUT"
        )
        assert status == 200, said
    counts = set()
    for format, name in (("visual-genome", "vg"), ("coco", "coco.json"), ("jsonl", "lines.jsonl")):
        status, content, headers = call(f"{server}/api/export/{format}")
        assert status == 200
        assert "attachment" in headers["content-disposition"]
        if format == "visual-genome":
            zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path / name)
        else:
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        found = open_dataset(tmp_path / name, strict=True)
        counts.add((len(found), sum(map(len, found)), sum(len(graph.relations) for graph in found)))
    assert len(counts) == 1
    assert next(iter(counts))[0] == total
    tasks = call(f"{server}/api/export/label-studio")[1]
    assert len(tasks) == total
    first = tasks[0]["annotations"][0]["result"]
    boxes = {each["id"] for each in first if each["type"] == "rectanglelabels"}
    assert all({each["from_id"], each["to_id"]} <= boxes for each in first if each["type"] == "relation")
    assert all(0 <= each["value"]["x"] <= 100 for each in first if each["type"] == "rectanglelabels")
    folder = tmp_path / "run"
    train(small_config(tmp_path / "vg", data={"validation": 2}), folder)
    assert (folder / "model" / "model.safetensors").is_file()


def test_only_known_names_are_saved(server):
    graph = call(f"{server}/api/images/1")[1]["graph"]
    graph["objects"][0]["label"] = "quetzalcoatlus"
    graph["vocabulary"]["objects"].append("quetzalcoatlus")
    status, said, _ = call(f"{server}/api/annotations/1", {"graph": graph, "revision": 99}, "PUT")
    assert status == 422
    assert "quetzalcoatlus" in said["detail"]
    assert call(f"{server}/api/annotations/77", {"graph": graph, "revision": 1}, "PUT")[0] == 404


def test_photos_without_graphs_can_be_annotated(tmp_path):
    from serve.serve_cases import running

    photos = scenes(tmp_path / "scenes", 2) / "images"
    with running({"path": Path(photos), "annotations": tmp_path / "notes"}) as (url, _):
        assert call(f"{url}/api/library")[1]["kind"] == "photos"
        about = call(f"{url}/api/images/0")[1]
        assert about["graph"] is None
        graph = {
            "image": {"width": about["width"], "height": about["height"]},
            "vocabulary": {"objects": ["person", "horse"], "predicates": ["riding"]},
            "objects": [{"box": [0, 0, 9, 9], "label": "person"}, {"box": [5, 5, 20, 20], "label": "horse"}],
            "relations": [{"subject": 0, "predicate": "riding", "object": 1}],
        }
        assert call(f"{url}/api/annotations/0", {"graph": graph, "revision": 1}, "PUT")[0] == 200
        status, content, _ = call(f"{url}/api/export/visual-genome")
        assert status == 200
        zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path / "vg")
        (found,) = open_dataset(tmp_path / "vg", images=photos)
        assert found.triplets()[0][:3] == ("person", "riding", "horse")
        assert open_dataset(tmp_path / "vg", images=photos).photo_path(found) is not None
