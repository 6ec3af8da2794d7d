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
from PIL import Image
from typer.testing import CliRunner

from scenegpi import SceneGraph, Vocabulary
from scenegpi.bulk.journal import Journal
from scenegpi.cli import app
from scenegpi.data import open_dataset
from scenegpi.errors import DataError, SceneGPIError
from scenegpi.serve import annotations
from scenegpi.serve.annotations import JOURNAL, Annotations, ConflictError, NotWrittenError
from serve.serve_cases import BOXES, NAMES, call, no_space, running, scenes, small_files

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
        kept.save("a", scene(), "begun", 0, by="Ada", machine=[1])
        kept.save("b", scene(image_id="b"), "done", 0)
        kept.save("a", scene("near"), "reviewed", 1, comment="sure?")
        assert kept.counts() == {"images": 2, "done": 2, "relations": 2}
    with Annotations(tmp_path / "a") as again:
        state = again.states["a"]
        assert (state.graph, state.revision, state.status, state.comment) == (scene("near"), 2, "reviewed", "sure?")
        past = again.history("a")
        assert [(each.revision, each.by, each.machine) for each in past] == [(2, "", ()), (1, "Ada", (1,))]
        assert past[1].graph == scene()
        with pytest.raises(DataError, match="in use"), Annotations(tmp_path / "a"):
            pass


def test_a_change_to_an_older_state_is_refused_and_changes_nothing(tmp_path):
    with Annotations(tmp_path / "a") as kept:
        kept.save("a", scene("near"), "begun", 0, change="one")
        for based_on in (0, 2, 7):
            with pytest.raises(ConflictError):
                kept.save("a", scene("riding"), "begun", based_on, change="two")
        assert kept.states["a"].graph == scene("near")
        assert kept.save("a", scene("near"), "begun", 0, change="one").revision == 1  # sent again: its answer was lost
        assert kept.save("a", scene("riding"), "begun", 1, change="two").revision == 2


def test_a_journal_belongs_to_one_data_set(tmp_path):
    with Annotations(tmp_path / "a", "/x/photos") as kept:
        kept.save("a", scene(), "done", 0)
    with pytest.raises(DataError, match="of /x/photos, not of /y/photos"), Annotations(tmp_path / "a", "/y/photos"):
        pass
    with Annotations(tmp_path / "a", "/y/photos", moved=True) as kept:
        kept.save("b", scene(image_id="b"), "done", 0)
    with Annotations(tmp_path / "a", "/y/photos") as kept:
        assert set(kept.states) == {"a", "b"}


def test_a_journal_without_source_and_with_done_is_read_and_adopted(tmp_path):
    line = {"key": "a", "revision": 3, "done": True, "graph": scene().to_dict()}
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / JOURNAL).write_text(json.dumps(line) + "\n")
    with Annotations(tmp_path / "a", "/x") as kept:
        assert (kept.states["a"].status, kept.states["a"].revision) == ("done", 3)
        kept.save("a", scene("near"), "done", 3)
    with pytest.raises(DataError, match="of /x, not of /y"), Annotations(tmp_path / "a", "/y"):
        pass


def test_looking_leaves_nothing(tmp_path):
    with Annotations(tmp_path / "a"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_a_line_that_was_cut_short_costs_only_itself(tmp_path, cut):
    with Annotations(tmp_path / "a") as kept:
        kept.save("a", scene(), "begun", 0)
        kept.save("b", scene(image_id="b"), "begun", 0)
    path = tmp_path / "a" / JOURNAL
    path.write_bytes(path.read_bytes()[:-cut])
    with Annotations(tmp_path / "a") as again:
        assert set(again.states) == {"a"}
        again.save("c", scene(image_id="c"), "begun", 0)
        assert again.history("c")[0].graph == scene(image_id="c")
    with Annotations(tmp_path / "a") as third:
        assert set(third.states) == {"a", "c"}


@pytest.mark.parametrize("line", [2, 3])
def test_damage_is_an_error_and_not_a_loss(tmp_path, line):
    """Also in the last line: it is whole, so it was called saved."""
    with Annotations(tmp_path / "a") as kept:
        for key in "abc":
            kept.save(key, scene(image_id=key), "begun", 0)
    path = tmp_path / "a" / JOURNAL
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:line], lines[line][:50], *lines[line + 1 :]]))
    before = path.read_bytes()
    with pytest.raises(DataError, match=f"line {line + 1}: damaged"), Annotations(tmp_path / "a"):
        pass
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"revision":1', '"revision":1e999'),
        ('"revision":1', '"revision":1.5'),
        ('"revision":1', '"revision":-1'),
        ('"machine":[1]', '"machine":[2]'),
        ('"machine":[1]', '"machine":[-1]'),
        ('"machine":[1]', '"machine":[1e999]'),
        ('"machine":[1]', '"machine":"x"'),
        ('"key":"a"', '"key":1e999'),
        ('"status":"begun"', '"status":["done"]'),
    ],
)
def test_odd_values_of_a_line_are_named(tmp_path, old, new):
    with Annotations(tmp_path / "a") as kept:
        kept.save("a", scene(), "begun", 0, machine=[1])
    path = tmp_path / "a" / JOURNAL
    text = path.read_text().replace(old, new, 1)
    assert new in text
    path.write_text(text)
    field = old.split('"')[1]
    with pytest.raises(DataError, match=rf"line 2: damaged \(.*{field}"), Annotations(tmp_path / "a"):
        pass
    assert path.read_text() == text


@pytest.mark.parametrize("full", [False, True])
def test_a_long_journal_is_written_anew_when_it_is_opened_if_the_disk_takes_it(tmp_path, monkeypatch, full):
    monkeypatch.setattr(annotations, "LONG", 50)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    with Annotations(tmp_path / "a", "/x") as kept:
        kept.add_names(["zebra"], [])
        for revision in range(100):
            kept.save("a", scene(), "begun", revision)
    size = (tmp_path / "a" / JOURNAL).stat().st_size

    def refuse(self, _):
        raise DataError(self.path, "cannot be written (No space left on device)")

    with monkeypatch.context() as patch:
        if full:
            patch.setattr(Journal, "replace", refuse)
        with Annotations(tmp_path / "a", "/x") as again:
            assert ((tmp_path / "a" / JOURNAL).stat().st_size == size) == full
            assert again.save("a", scene("near"), "done", 100).revision == 101
    with Annotations(tmp_path / "a", "/x") as third:
        assert third.states["a"].graph == scene("near")
        assert [each.revision for each in third.history("a")] == list(range(101, 81, -1))
        assert "zebra" in third.vocabulary(WORDS).objects


@pytest.mark.parametrize("room", [0, 25])
def test_a_full_disk_is_said_and_the_same_change_is_saved_once_there_is_room(tmp_path, room):
    """Half a line may get onto the disk: it is taken back, here and when the studio is started meanwhile."""
    with Annotations(tmp_path / "a") as kept:
        kept.save("a", scene(), "begun", 0)
        with small_files((tmp_path / "a" / JOURNAL).stat().st_size + room):
            with pytest.raises(NotWrittenError, match="cannot be written"):
                kept.save("a", scene("near"), "done", 1, change="x")
            assert kept.states["a"].revision == 1
    with small_files(0):
        with Annotations(tmp_path / "a") as again:
            assert again.states["a"].graph == again.history("a")[0].graph == scene()
            with pytest.raises(NotWrittenError):
                again.save("a", scene("near"), "done", 1, change="x")
        with Annotations(tmp_path / "b") as first, pytest.raises(NotWrittenError):
            first.save("a", scene(), "begun", 0)
    with Annotations(tmp_path / "a") as again:
        assert again.save("a", scene("near"), "done", 1, change="x").revision == 2
    with Annotations(tmp_path / "a") as again:
        assert again.states["a"].graph == scene("near")


def test_two_studios_that_begin_in_one_folder(tmp_path):
    with Annotations(tmp_path / "a") as one, Annotations(tmp_path / "a") as two:
        one.save("a", scene(), "begun", 0)
        with pytest.raises(NotWrittenError, match="another studio has created it"):
            two.save("a", scene("near"), "begun", 0)


def test_only_what_a_person_confirmed_is_exported(tmp_path):
    with Annotations(tmp_path / "a") as kept:
        kept.save("a", scene().subset([0, 1]).replace(relations=[]), "begun", 0, machine=[0])
        kept.save("b", scene(image_id="b"), "done", 0, machine=[0, 1])
        kept.save("c", scene(image_id="c"), "rejected", 0)
        assert [len(graph) for graph in kept.graphs()] == [2]
        assert [len(graph) for graph in kept.graphs(("begun", "done"))] == [1, 2]


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
        status, said, _ = call(f"{url}/api/annotations/0", {"graph": graph, "based_on": revision - 1}, "PUT")
        assert (status, said["revision"]) == (200, revision)
    process.send_signal(signal.SIGKILL)
    process.wait()
    url, process = started()
    kept = call(f"{url}/api/annotations/0")[1]
    assert kept["revision"] == 5
    assert len(kept["graph"]["relations"]) == len(graph["relations"])
    assert call(f"{url}/api/annotations")[1]["images"] == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(600) == 143


def test_exports_read_back(server, tmp_path):
    total = call(f"{server}/api/images")[1]["total"]
    for number in range(total):
        graph = call(f"{server}/api/images/{number}")[1]["graph"]
        status = "done" if number > 0 else "begun"
        status, said, _ = call(f"{server}/api/annotations/{number}", {"graph": graph, "status": status}, "PUT")
        assert status == 200, said
    counts = set()
    for format, name in (("visual-genome", "vg"), ("coco", "coco.json"), ("jsonl", "lines.jsonl")):
        status, content, headers = call(f"{server}/api/export/{format}?status=all")
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
    assert len(tasks) == total - 1  # by default what is done
    first = tasks[0]["annotations"][0]["result"]
    boxes = {each["id"] for each in first if each["type"] == "rectanglelabels"}
    assert all({each["from_id"], each["to_id"]} <= boxes for each in first if each["type"] == "relation")
    assert all(0 <= each["value"]["x"] <= 100 for each in first if each["type"] == "rectanglelabels")


def test_the_gain_of_training_on_annotations_is_shown(tmp_path):
    """Annotators who say "behind" where the model says something else; a fifth of their pictures is set aside."""
    photos = tmp_path / "photos"
    photos.mkdir()
    for k in range(30):
        Image.new("RGB", (100, 100), (8 * k, 0, 0)).save(photos / f"{k:02d}.jpg")
    names = {"objects": NAMES, "predicates": ["behind"]}
    with running({"path": photos, "annotations": tmp_path / "notes", "model": "vg150-layout"}) as (url, _):
        for k in range(30):
            objects = [{"box": box, "label": label} for box, label in zip(BOXES, NAMES, strict=True)]
            links = [{"subject": s, "predicate": "behind", "object": o} for s, o in ((0, 1), (0, 2), (1, 2))]
            graph = {
                "image": {"width": 100, "height": 100},
                "vocabulary": names,
                "objects": objects,
                "relations": links,
            }
            assert call(f"{url}/api/annotations/{k}", {"graph": graph, "status": "done"}, "PUT")[0] == 200
        lines = call(f"{url}/api/export/jsonl?test=5")[1]
        assert call(f"{url}/api/export/coco?test=5")[0] == 200
    (tmp_path / "own.jsonl").write_bytes(lines)
    aside = sum(json.loads(line).get("split") == "test" for line in lines.splitlines())
    assert 0 < aside < 15
    words = ["train", "--data", str(tmp_path / "own.jsonl"), "--preset", "baseline", "--epochs", "2"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "own"), "--against", "vg150-layout"])
    assert done.exit_code == 0, done.output
    said = done.output[done.output.index("own against vg150-layout") :]
    assert f"{aside} images" in said
    gain = re.search(r"R@50.*?([+-]\d+\.\d)", said)
    assert gain is not None, said
    assert float(gain[1]) > 0
    other = tmp_path / "other.jsonl"
    other.write_bytes(lines.replace(NAMES[0].encode(), b"quetzalcoatlus"))  # the model to compare with lacks it
    for wrong in (
        ["--against", "no-model"],
        *(["--against", "vg150-layout", "--data", str(each)] for each in (tmp_path / "none.jsonl", other)),
    ):
        done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "new"), *wrong])
        assert isinstance(done.exception, SceneGPIError)
        assert not (tmp_path / "new").exists()


def test_only_known_names_are_saved_and_names_can_be_added(server):
    graph = call(f"{server}/api/images/1")[1]["graph"]
    graph["objects"][0]["label"] = "quetzalcoatlus"
    graph["vocabulary"]["objects"].append("quetzalcoatlus")
    based_on = call(f"{server}/api/annotations/1")[1]["revision"]
    change = {"graph": graph, "based_on": based_on}
    status, said, _ = call(f"{server}/api/annotations/1", change, "PUT")
    assert status == 422
    assert "quetzalcoatlus" in said["detail"]
    assert call(f"{server}/api/annotations/77", change, "PUT")[0] == 404
    status, said, _ = call(f"{server}/api/names", {"objects": ["quetzalcoatlus"]})
    assert (status, said["objects"][-1]) == (200, "quetzalcoatlus")
    assert call(f"{server}/api/annotations/1", change, "PUT")[0] == 200
    for format in ("visual-genome", "coco", "jsonl", "label-studio"):  # graphs of before and after together
        assert call(f"{server}/api/export/{format}?status=all")[0] == 200


def test_two_windows_do_not_lose_each_others_work(server):
    graph = call(f"{server}/api/images/2")[1]["graph"]
    based_on = call(f"{server}/api/annotations/2")[1]["revision"]
    first = {"graph": graph, "based_on": based_on, "change": "first"}
    second = {"graph": graph | {"relations": []}, "based_on": based_on, "change": "second"}
    put = lambda body: call(f"{server}/api/annotations/2", body, "PUT")[0]  # noqa: E731
    assert [put(first), put(second), put(first)] == [200, 409, 200]
    kept = call(f"{server}/api/annotations/2")[1]
    assert (kept["revision"], kept["change"]) == (based_on + 1, "first")
    assert len(kept["graph"]["relations"]) == len(graph["relations"])
    past = call(f"{server}/api/annotations/2/history")[1]["versions"]
    assert past[0]["revision"] == based_on + 1
    assert put(second | {"based_on": based_on + 1}) == 200


def test_no_boxes_and_many_boxes_are_saved(server):
    graph = call(f"{server}/api/images/3")[1]["graph"]
    based_on = call(f"{server}/api/annotations/3")[1]["revision"]
    for number in (0, 300, 0):
        boxes = [{"box": [k, 0, k + 5, 5], "label": "person"} for k in range(number)]
        body = {"graph": graph | {"objects": boxes, "relations": []}, "based_on": based_on}
        assert call(f"{server}/api/annotations/3", body, "PUT")[0] == 200
        based_on += 1
        assert len(call(f"{server}/api/annotations/3")[1]["graph"]["objects"]) == number
    many = [{"box": [0, 0, 5, 5], "label": "person"}] * 2001
    status, said, _ = call(
        f"{server}/api/annotations/3",
        {"graph": graph | {"objects": many, "relations": []}, "based_on": based_on},
        "PUT",
    )
    assert (status, said["detail"]) == (422, "graph: 2001 boxes, at most 2000")


def test_a_full_disk_is_507(tmp_path, data, monkeypatch):
    with running({"path": data, "annotations": tmp_path / "notes"}) as (url, _):
        graph = call(f"{url}/api/images/0")[1]["graph"]

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", no_space)
            status, said, _ = call(f"{url}/api/annotations/0", {"graph": graph}, "PUT")
            assert (status, said["detail"]) == (507, "cannot be written (No space left on device)")
        assert call(f"{url}/api/annotations/0", {"graph": graph}, "PUT")[0] == 200


def test_photos_without_graphs_can_be_annotated(tmp_path):
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
        assert call(f"{url}/api/annotations/0", {"graph": graph, "status": "done"}, "PUT")[0] == 200
        status, content, _ = call(f"{url}/api/export/visual-genome")
        assert status == 200
        zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path / "vg")
        (found,) = open_dataset(tmp_path / "vg", images=photos)
        assert found.triplets()[0][:3] == ("person", "riding", "horse")
        assert open_dataset(tmp_path / "vg", images=photos).photo_path(found) is not None
