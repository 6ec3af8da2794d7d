"""`predict --engine ray`: the rows of a plain run, finished shards once, nothing lost when an actor is killed."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import numpy as np
import pytest
from typer.testing import CliRunner

from commands.predict_cases import photo
from models.model_cases import random_graphs, small_model
from scenegpi.bulk import ray_shards
from scenegpi.bulk.digests import photo_digest
from scenegpi.bulk.ray_shards import ENVIRONMENT, ShardActor, Shards, shard_settings
from scenegpi.bulk.run_inputs import Entry, Inputs
from scenegpi.bulk.summary import Summary
from scenegpi.bulk.workers import Setup
from scenegpi.cli import app
from scenegpi.data import open_dataset, write_jsonl
from scenegpi.errors import DataError
from scenegpi.models import save_model
from scenegpi.prediction import Item, Prediction, PredictOptions, Predictor

if find_spec("ray") is None:  # not imported before `token` has set what it reads at its import
    pytest.skip("the extra [ray] is not installed", allow_module_level=True)
pq = pytest.importorskip("pyarrow.parquet", reason="the extra [ray] is not installed")
pa = pytest.importorskip("pyarrow")
IMAGES = 37
ENOUGH = 120.0
"""Seconds for a cluster to come up on a starved machine."""


@pytest.fixture(autouse=True, scope="module")
def _handlers_are_left_alone():
    levels = {handler: handler.level for handler in logging.root.handlers}
    yield
    assert {handler: handler.level for handler in levels} == levels


@pytest.fixture(scope="module", autouse=True)
def token():
    """Processes of ray know each other by a word of these tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ENVIRONMENT, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid4().hex}.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def cluster(token):
    """The address of a ray that another process started, as `ray start` does on the machines of a cluster."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("its processes are found by way of /proc")
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="ray-"))  # names of sockets must be short
    words = ["--head", "--block", f"--port={port}", "--node-ip-address=127.0.0.1", "--num-cpus=1"]
    words += [f"--temp-dir={folder}", "--include-dashboard=false", "--disable-usage-stats"]
    head = subprocess.Popen(
        [sys.executable, "-m", "ray.scripts.scripts", "start", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + ENOUGH
        while not (folder / "ray_current_cluster").exists():
            if head.poll() is not None or time.monotonic() > end:
                pytest.skip("ray does not start here")
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        for pid in [*below(head.pid), head.pid]:  # asked to end, ray takes its time
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        head.wait()
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A model, and the same boxes as JSON lines and as Parquet."""
    folder = tmp_path_factory.mktemp("ray")
    save_model(small_model("baseline"), folder / "model")
    graphs = random_graphs(tuple((3, 0, 1, 6, 12)[k % 5] for k in range(IMAGES)), dist=False)
    write_jsonl(folder / "boxes.jsonl", graphs)
    rows = [{"id": g.image_id, "width": g.width, "height": g.height} for g in graphs]
    rows = [row | {"boxes": g.boxes.tolist(), "labels": list(g.names)} for row, g in zip(rows, graphs, strict=True)]
    import pyarrow

    pq.write_table(pyarrow.Table.from_pylist(rows), folder / "boxes.parquet", row_group_size=8)
    return folder


@pytest.fixture(scope="module")
def plain(data, tmp_path_factory):
    """The rows of a run without ray."""
    return predicted(data, "boxes.jsonl", tmp_path_factory.mktemp("plain"))


def predicted(folder: Path, boxes: str, out: Path, *more: str) -> list[dict]:
    predict(folder, boxes, out, *more)
    return rows(out)


def predict(folder: Path, boxes: str, out: Path, *more: str) -> None:
    words = ["predict", str(folder / boxes), "--model", str(folder / "model"), "--out", str(out), "--formats", "none"]
    done = CliRunner().invoke(app, [*words, *more])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"


def rows(out: Path) -> list[dict]:
    """All rows of a run, sorted, without vocabularies, which each file has once."""
    files = [out / "predictions.jsonl"] if (out / "predictions.jsonl").exists() else sorted(out.glob("shards/*.*"))
    lines: list[str] = []
    for file in files:
        if file.suffix == ".parquet":
            lines += pq.read_table(file).column("graph").to_pylist()
        else:
            lines += file.read_text().splitlines()
    found = [json.loads(line) for line in lines]
    for row in found:
        del row["vocabulary"]
    return sorted(found, key=lambda row: str(row["source"]))


def assert_same(found: list[dict], wanted: list[dict]) -> None:
    """Equal but for the last bits of numbers: images are not batched alike."""
    numbers: dict[str, list[float]] = {"found": [], "wanted": []}

    def without(value, kept):
        if isinstance(value, float):
            kept.append(value)
            return None
        if isinstance(value, dict):
            return {key: without(each, kept) for key, each in value.items()}
        return [without(each, kept) for each in value] if isinstance(value, list) else value

    assert without(found, numbers["found"]) == without(wanted, numbers["wanted"])
    np.testing.assert_allclose(numbers["found"], numbers["wanted"], atol=1e-6)


def unexpected(text: str) -> list[str]:
    """Lines that neither tell of progress nor that ray was told to be quiet."""
    return [line for line in text.splitlines() if not line.startswith("images:") and "Set ray log level" not in line]


def test_the_rows_are_those_of_a_plain_run(data, plain, tmp_path):
    out = tmp_path / "out"
    assert len(plain) == IMAGES
    assert_same(predicted(data, "boxes.jsonl", out, "--engine", "ray", "--shard", "10"), plain)
    assert sorted(file.name for file in (out / "shards").iterdir()) == [f"{k:06d}.jsonl" for k in range(4)]
    assert len(open_dataset(out / "shards" / "000001.jsonl")) == 10  # a shard is a data set of its own


def test_parquet_without_ray_gives_the_same_rows(data, plain, tmp_path):
    assert_same(predicted(data, "boxes.parquet", tmp_path), plain)


def test_a_bad_row_is_skipped_and_named(data, plain, tmp_path):
    table = pq.read_table(data / "boxes.parquet")
    rows = table.to_pylist()
    rows[2]["boxes"] = [[5.0, 0.0, 0.0, 5.0]]
    pq.write_table(type(table).from_pylist(rows, table.schema), tmp_path / "bad.parquet")
    words = ["predict", str(tmp_path / "bad.parquet"), "--model", str(data / "model"), "--formats", "none"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "bad.parquet: row 2: boxes[0]" in (tmp_path / "out" / "skipped.txt").read_text()
    assert len((tmp_path / "out" / "predictions.jsonl").read_text().splitlines()) == IMAGES - 1


def test_shards_of_other_images_are_not_taken_for_these(data):
    boxes = open_dataset(data / "boxes.jsonl")
    runs = [
        shard_settings(Inputs([], boxes), "jsonl", 10),
        shard_settings(Inputs([], boxes[:25]), "jsonl", 10),
        shard_settings(Inputs([], boxes), "jsonl", 9),
        shard_settings(Inputs([], boxes), "parquet", 10),
        shard_settings(Inputs([], open_dataset(data / "boxes.parquet")), "jsonl", 10),
        shard_settings(Inputs([Path("a.jpg")], None), "jsonl", 10),
        shard_settings(Inputs([Path("b.jpg")], None), "jsonl", 10),
    ]
    assert len({json.dumps(run) for run in runs}) == len(runs)
    assert shard_settings(Inputs([], open_dataset(data / "boxes.jsonl")), "jsonl", 10) == runs[0]


def below(pid: int) -> list[int]:
    """Processes that descend from one."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found, new = [], [pid]
    while new:
        new = [child for child, parent in parents.items() if parent in new]
        found += new
    return found


def test_a_killed_actor_loses_nothing_and_finished_shards_are_not_done_again(
    data, plain, cluster, tmp_path, monkeypatch
):
    """By address, Parquet to Parquet: one shard is done before, and at another one the process of the actor is killed."""
    out = tmp_path / "out"
    more = ["--engine", "ray", "--shard", "1", "--form", "parquet", "--address", cluster]

    def broken_off(*_: object) -> None:
        (out / "shards").mkdir()
        raise DataError("--address", "broken off")

    with monkeypatch.context() as patch:
        patch.setattr("scenegpi.bulk.ray_shards._connect", broken_off)
        with pytest.raises(AssertionError, match="broken off"):
            predict(data, "boxes.parquet", out, *more)
    done = out / "shards" / "000005.parquet"
    whole = pq.read_table(data / "boxes.parquet").slice(5, 1)
    pq.write_table(whole.append_column("graph", [["{}"]]), done)
    before_bytes = done.read_bytes()
    (out / "shards" / "000006.parquet").touch()  # empty: not done
    killed = tmp_path / "killed"

    class Killed(ShardActor):  # defined here it travels whole: these tests need not be on the path of a cluster
        def shard(self, k: int) -> Summary:
            if k == 9 and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return ShardActor.shard(self, k)

    monkeypatch.setattr("scenegpi.bulk.ray_shards.ShardActor", Killed)
    predict(data, "boxes.parquet", out, *more)
    assert killed.exists()
    assert done.read_bytes() == before_bytes
    done.unlink()
    before = str(open_dataset(data / "boxes.jsonl")[5].image_id)
    assert_same(rows(out), [row for row in plain if row["source"] != before])
    assert len(open_dataset(out / "shards")) == IMAGES - 1  # Parquet shards are a data set, too


def test_summaries_are_joined(data):
    summary = Summary()
    for k, graph in enumerate(random_graphs((3, 0, 4))):
        found = Prediction(
            Item(None, graph, f"image {k}"), graph, why_unread="\udc80 unread", vocabulary=graph.vocabulary
        )
        found.names.update(graph.names)
        found.left_out["too small"] += k
        summary.add(Entry(found.item, f"image {k}", f"image-{k}", prediction=found))
    bad = Prediction(Item(key="bad"), problem="bad: \x1b no photo")
    summary.add(Entry(bad.item, "bad", "bad", prediction=bad))
    again = pickle.loads(pickle.dumps(summary))  # as it travels
    assert again == summary
    again.join(summary)
    assert again.predicted == 2 * summary.predicted == 6
    assert again.names[summary.target].total() == 14


def test_a_signal_ends_a_run_as_without_ray(data, cluster, tmp_path):
    """Ray puts a handler of its own in the place of ours, which ends with another code and a page of text."""
    (graph,) = random_graphs((3,))
    write_jsonl(tmp_path / "many.jsonl", (graph.replace(image_id=k) for k in range(3000)))
    words = ["predict", "many.jsonl", "--model", data / "model", "--engine", "ray", "--shard", 1, "--out", "out"]
    words += ["--formats", "none", "--address", cluster]
    command = [sys.executable, "-c", "from scenegpi.cli import main; main()", *map(str, words)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        while run.poll() is None and not (tmp_path / "out" / "shards" / "000000.jsonl").exists():
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=ENOUGH)[1]
    assert (run.returncode, unexpected(said)) == (143, [])


def test_where_no_cluster_is(data, tmp_path):
    for address in (f"127.0.0.1:{free_port()}", "127.0.0.1:99999999"):
        with pytest.raises(AssertionError, match=rf"{address}: no cluster answers there"):
            predict(data, "boxes.jsonl", tmp_path, "--engine", "ray", "--address", address)


def test_files_for_all_images_and_unknown_words_are_refused(data, tmp_path):
    for more, message in (
        (["--engine", "ray", "--formats", "coco"], "one file"),
        (["--engine", "spark"], "'spark' is not one of 'local', 'ray'"),
        (["--engine", "ray", "--form", "csv"], "'csv' is not one of 'jsonl', 'parquet'"),
        (["--backend", "tf"], "'tf' is not one of 'torch', 'onnx'"),
        (["--labels", "maybe"], "'maybe' is not one of 'auto', 'believed', 'found'"),
    ):
        arguments = ["predict", "--boxes", str(data / "boxes.jsonl"), "--model", str(data / "model"), *more]
        done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
        assert done.exit_code != 0
        assert message in f"{done.exception} {' '.join(done.output.replace('│', ' ').split())}"


def test_shards_that_are_done(data, tmp_path):
    """Whole and of the same photos; an empty, cut or foreign file is done again."""
    boxes, out = open_dataset(data / "boxes.jsonl"), tmp_path / "out"
    setup = Setup(str(data / "model"), None, PredictOptions(), out, ())
    shards = Shards(Inputs([], boxes), setup, "jsonl", 10, "s")
    actor = ShardActor(shards)
    for k in range(4):
        assert not shards.is_done(k)
        assert actor.shard(k).predicted == min(10, IMAGES - 10 * k)
        assert shards.is_done(k)
    whole = shards.file(1).read_bytes()
    for bad in (b"", whole[:-1], whole[: len(whole) // 2], b"x"):
        shards.file(1).write_bytes(bad)
        assert not shards.is_done(1)
    assert actor.shard(1).predicted == 10
    assert shards.file(1).read_bytes() == whole
    photo = tmp_path / "a.jpg"
    photo.write_bytes(b"one")
    row = json.loads(whole.splitlines()[0]) | {"photo": str(photo), "digest": f"{photo_digest(photo)}.-.s"}
    shards.file(3).write_text(7 * (json.dumps(row, separators=(",", ":")) + "\n"))
    assert shards.is_done(3)
    photo.write_bytes(b"two")
    assert not shards.is_done(3)


def test_a_shard_with_skipped_photos_is_done_again(data, tmp_path):
    """As without ray: the photo is named by each run, until it can be read."""
    paths = [photo(tmp_path / f"{k}.jpg", 320, 240) for k in range(3)]
    paths[1].write_bytes(b"no photo")
    setup = Setup("vg150-photo", None, PredictOptions(), tmp_path / "out", ())
    shards = Shards(Inputs(paths, None), setup, "jsonl", 2, "s")
    actor, skipped = ShardActor(shards), shards.folder / "000000.skipped.txt"
    assert (actor.shard(1).predicted, actor.shard(0).predicted) == (1, 1)
    for _ in range(2):
        summary = Summary()
        assert list(shards.waiting(summary, lambda _: None)) == [0]
        assert summary.resumed == 1
        assert [line.partition(": ")[0] for line in actor.shard(0).skipped] == [str(paths[1])]
        assert skipped.exists()
    photo(paths[1], 320, 240)
    assert actor.shard(0).predicted == 2
    assert not list(shards.waiting(Summary(), lambda _: None))
    assert not skipped.exists()


def test_an_error_of_an_actor_is_said_as_without_ray(data, cluster, tmp_path, monkeypatch, capfd):
    class Full(ShardActor):
        def shard(self, k: int) -> Summary:
            raise DataError("out", "cannot be written (No space left on device)")

    monkeypatch.setattr("scenegpi.bulk.ray_shards.ShardActor", Full)
    with pytest.raises(AssertionError, match=r"out: cannot be written \(No space left on device\)"):
        predict(data, "boxes.jsonl", tmp_path / "out", "--engine", "ray", "--address", cluster)
    assert unexpected(capfd.readouterr().err) == []


def test_a_folder_shards_of_somebody_else_is_refused(data, tmp_path):
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "mine.txt").write_text("mine")
    for more in ([], ["--force"]):
        with pytest.raises(AssertionError, match=r"shards: exists and was not written by this run"):
            predict(data, "boxes.jsonl", tmp_path, "--engine", "ray", *more)
        predict(data, "boxes.jsonl", tmp_path, "--limit", "2", *more)
    assert (tmp_path / "shards" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("form", ["bytes", "struct"])
def test_photos_in_a_table_are_predicted_as_their_files_are(form, tmp_path):
    paths = [photo(tmp_path / "photos" / f"{k}.jpg", 320 + 16 * k, 240) for k in range(3)]
    held = [path.read_bytes() for path in paths] + [b"no photo"]
    column = held if form == "bytes" else [{"bytes": each, "path": None} for each in held]
    table = tmp_path / "photos.parquet"
    pq.write_table(pa.table({"image": column, "file_name": ["0.jpg", "1.jpg", "2.jpg", "3.jpg"]}), table, 2)
    inputs = Inputs([], open_dataset(table))
    setup = Setup("vg150-photo", None, PredictOptions(), tmp_path / "out", ())
    shards = Shards(pickle.loads(pickle.dumps(inputs)), setup, "jsonl", 4, "s")
    summary = ShardActor(shards).shard(0)
    assert (summary.predicted, len(summary.skipped)) == (3, 1)
    assert summary.skipped[0].startswith("3.jpg: ")
    predictor = Predictor("vg150-photo")
    for path, line in zip(paths, shards.file(0).read_text().splitlines(), strict=True):
        row, graph = json.loads(line), predictor(path)
        assert (row["source"], row["name"]) == (path.name, path.stem)
        assert [each["label"] for each in row["objects"]] == graph.names
        assert row["image"]["width"] == graph.width
    done = CliRunner().invoke(app, ["predict", str(table), "--limit", "2", "--out", str(tmp_path / "plain")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "plain" / "1.png").is_file()
    again = CliRunner().invoke(app, ["predict", str(table), "--limit", "2", "--out", str(tmp_path / "plain")])
    assert "2 images done before" in again.output


def test_boxes_with_the_photo_beside_them_in_a_table(tmp_path):
    content = photo(tmp_path / "a.jpg", 320, 240).read_bytes()
    boxes = [[[10, 10, 100, 200], [50, 60, 200, 220]]]
    table = tmp_path / "boxes.parquet"
    pq.write_table(pa.table({"boxes": boxes, "labels": [["man", "horse"]], "id": [7], "image": [content]}), table)
    dataset = open_dataset(table)
    assert dataset.boxed
    assert dataset.photo_bytes(0) == content
    (entry,) = Inputs([], dataset)
    assert (entry.item.photo, entry.source, len(entry.item.graph)) == (content, "7", 2)
    pq.write_table(pa.table({"boxes": boxes, "image": ["a.jpg"]}), table)  # a path, not a photo
    assert open_dataset(table).photo_bytes(0) is None


def test_a_ray_that_does_not_start_is_one_line():
    def init(**_):
        raise Exception("The current node timed out during startup.\nMore of it.")

    with pytest.raises(
        DataError, match=r"--engine ray: ray does not start or respond \(The current node timed out"
    ) as error:
        ray_shards._connect(SimpleNamespace(init=init), 1, None)
    assert "\n" not in str(error.value)
