"""`predict --engine ray`: the rows of a plain run, finished shards once, nothing lost when an actor is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from models.model_cases import random_graphs, small_model
from scenegpi.cli import app
from scenegpi.commands.predict_inputs import Inputs
from scenegpi.commands.predict_ray import run_ray
from scenegpi.commands.predict_run import Setup
from scenegpi.data import open_dataset, write_jsonl
from scenegpi.models import save_model
from scenegpi.prediction import PredictOptions

ray = pytest.importorskip("ray", reason="the extra [ray] is not installed")
IMAGES = 37


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """One ray for all tests: starting it takes seconds. Its workers are as important as the tests."""
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - as ray spells it
    try:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    except Exception as error:  # it waits for half a minute, which a starved machine may not keep
        pytest.skip(f"ray does not start here: {error}")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    save_model(small_model("baseline"), folder / "model")
    sizes = tuple((3, 0, 1, 6, 12)[k % 5] for k in range(IMAGES))
    write_jsonl(folder / "boxes.jsonl", random_graphs(sizes, dist=False))
    return folder


def predicted(folder: Path, *more: str) -> list[dict]:
    arguments = ["predict", "--boxes", str(folder / "boxes.jsonl"), "--model", str(folder / "model")]
    done = CliRunner().invoke(app, [*arguments, "--formats", "none", *more])
    assert done.exit_code == 0, done.output
    out = Path(more[more.index("--out") + 1])
    return rows(out)


def rows(out: Path) -> list[dict]:
    """All rows of a run, sorted, without vocabularies, which each file has once."""
    files = [out / "predictions.jsonl"] if (out / "predictions.jsonl").exists() else sorted(out.glob("shards/*.*"))
    lines: list[str] = []
    for file in files:
        if file.suffix == ".parquet":
            import pyarrow.parquet

            lines += pyarrow.parquet.read_table(file).column("graph").to_pylist()
        else:
            lines += file.read_text().splitlines()
    found = [json.loads(line) for line in lines]
    for row in found:
        del row["vocabulary"]
    return sorted(found, key=lambda row: str(row["source"]))


def test_the_rows_are_those_of_a_plain_run(data, tmp_path):
    plain = predicted(data, "--out", str(tmp_path / "plain"))
    assert len(plain) == IMAGES
    for form in ("jsonl", "parquet"):
        out = tmp_path / form
        sharded = predicted(data, "--out", str(out), "--engine", "ray", "--shard", "10", "--form", form)
        assert sharded == plain
        assert sorted(file.name for file in (out / "shards").iterdir()) == [f"{k:06d}.{form}" for k in range(4)]
    graphs = open_dataset(tmp_path / "jsonl" / "shards" / "000001.jsonl")  # a shard is a data set of its own
    assert len(graphs) == 10


def test_finished_shards_are_not_done_again(data, tmp_path):
    out = tmp_path / "out"
    more = ["--out", str(out), "--engine", "ray", "--shard", "10"]
    first = predicted(data, *more)
    files = {file: file.stat().st_mtime_ns for file in (out / "shards").iterdir()}
    lost = out / "shards" / "000002.jsonl"
    lost.unlink()
    assert predicted(data, *more) == first
    again = {file for file, before in files.items() if file.stat().st_mtime_ns != before}
    assert again == {lost}
    # Other images under the same numbers must not be taken for these: such a run goes to a folder of its own.
    predicted(data, *more, "--limit", "25")
    assert {file: file.stat().st_mtime_ns for file in files if file != lost}.items() <= files.items()
    assert len(list((tmp_path / "out-2" / "shards").iterdir())) == 3


def our_actors() -> list[int]:
    """Processes of shard actors that descend from this one, whatever else runs on the machine."""
    parents, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid = int(folder.name)
            parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if b"ShardActor" in (folder / "cmdline").read_bytes():
                found.append(pid)
    return [pid for pid in found if os.getpid() in ancestors(pid, parents)]


def ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    found = []
    while pid in parents:
        pid = parents[pid]
        found.append(pid)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found by way of /proc")
def test_a_killed_actor_loses_nothing(data, tmp_path):
    """The process of an actor is killed while shards are waiting; the run goes on and gives all rows."""
    inputs = Inputs([], open_dataset(data / "boxes.jsonl"))
    setup = Setup(str(data / "model"), None, PredictOptions(max_boxes=64), tmp_path, ())
    killed: list[int] = []

    def kill() -> None:
        while not killed and not any(tmp_path.glob("shards/*.jsonl")):
            time.sleep(0.01)
        for pid in our_actors():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    watcher = threading.Thread(target=kill, daemon=True)
    watcher.start()
    summary = run_ray(inputs, setup, "jsonl", 1, 1, None, lambda images: None)
    watcher.join(60)
    assert killed
    assert summary.predicted + summary.resumed == IMAGES
    assert rows(tmp_path) == predicted(data, "--out", str(tmp_path / "plain"))


def test_files_for_all_images_and_unknown_words_are_refused(data, tmp_path):
    for more, message in (
        (["--engine", "ray", "--formats", "coco"], "one file"),
        (["--engine", "spark"], "none of local, ray"),
        (["--engine", "ray", "--form", "csv"], "none of jsonl, parquet"),
    ):
        arguments = ["predict", "--boxes", str(data / "boxes.jsonl"), "--model", str(data / "model"), *more]
        done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
        assert done.exit_code != 0
        assert message in str(done.exception)
