"""A store on disk: appended to and replaced whole or not at all, readable by others, closed to what is broken."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import duckdb
import numpy as np
import pytest

from scenegpi import SceneGraph, Vocabulary
from scenegpi.errors import DataError
from scenegpi.store import Store

WORDS = Vocabulary(["man", "horse", "hat"], ["riding", "wearing"], "tiny")


def scene(image_id, labels=("man", "horse"), predicate="riding", **fields) -> SceneGraph:
    boxes = [[10 * i, 0, 10 * i + 9, 9] for i in range(len(labels))]
    return SceneGraph(boxes, list(labels), WORDS, [(0, 1, predicate)], image_id=image_id, **fields)


def keys(store, query):
    return {hit.key for hit in store.search(query, limit=1000).hits}


def test_images_are_appended_and_replaced_by_their_key(tmp_path):
    store = Store(tmp_path / "s")
    assert store.add([scene(1), scene(2), scene("x")]) == (3, 0)
    assert store.add([scene(3), scene(2, ("man", "hat"), "wearing")]) == (2, 1)
    assert len(store) == 4
    assert keys(store, "man riding horse") == {"1", "3", "x"}
    assert keys(store, "man wearing hat") == {"2"}
    assert store.add([scene(n, ("man", "hat"), "wearing") for n in (1, 2, 3, "x")]) == (4, 4)
    assert len(store) == 4
    assert keys(store, "man riding horse") == set()
    parts = json.loads((tmp_path / "s" / "store.json").read_text())["parts"]
    assert len(parts) == 1  # parts of which nothing is left are gone
    assert len(list((tmp_path / "s").glob("*.parquet"))) == 5 * len(parts)


def test_vocabularies_may_differ(tmp_path):
    other = Vocabulary(["hat", "zebra"], ["wearing"])
    store = Store(tmp_path / "s")
    store.add(
        [scene(1), SceneGraph([[0, 0, 1, 1], [2, 2, 3, 3]], ["zebra", "hat"], other, [(0, 1, "wearing")], file="z.jpg")]
    )
    assert keys(store, "zebra wearing hat") == {"z.jpg"}
    assert store.graph(1).vocabulary == other


def test_a_failure_on_the_way_changes_nothing(tmp_path):
    store = Store(tmp_path / "s")
    store.add([scene(1)])
    before = {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()}

    def broken():
        yield scene(2)
        raise DataError("somewhere", "broken")

    with pytest.raises(DataError, match="broken"):
        store.add(broken())
    with pytest.raises(DataError, match=r'image "3" is duplicated'):
        store.add([scene(3), scene(3)])
    assert keys(store, "man") == {"1"}
    store.add([scene(4)])
    left = {path.name for path in (tmp_path / "s").iterdir()}
    named = json.loads((tmp_path / "s" / "store.json").read_text())["parts"]
    assert {int(name.split("-")[1][:6]) for name in left if name.endswith(".parquet")} == set(named)
    assert all(
        (tmp_path / "s" / name).read_bytes() == data for name, data in before.items() if name.endswith(".parquet")
    )


SLOW = """
import sys, time
from scenegpi.store import Store
sys.path[:0] = [{tests!r}]
from store.test_store_folder import scene
def graphs():
    for n in range(50_000):
        yield scene(n)
    print("written", flush=True)
    time.sleep(60)
Store({folder!r}).add(graphs())
"""


def test_a_killed_process_leaves_the_store_as_it_was(tmp_path):
    store = Store(tmp_path / "s")
    store.add([scene("first")])
    tests = os.path.dirname(os.path.dirname(__file__))
    code = SLOW.format(tests=tests, folder=str(tmp_path / "s"))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().strip() == "written"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(list((tmp_path / "s").glob("images-*.parquet"))) == 2  # half written
    assert keys(Store(tmp_path / "s"), "man") == {"first"}
    store.add([scene("second")])
    assert keys(store, "man") == {"first", "second"}
    assert len(list((tmp_path / "s").glob("images-*.parquet"))) == 2


def test_two_processes_do_not_write_at_once(tmp_path):
    store = Store(tmp_path / "s")

    def graphs():
        yield scene(1)
        with pytest.raises(DataError, match="in use by process"):
            Store(tmp_path / "s").add([scene(2)])

    store.add(graphs())
    assert len(store) == 1


def test_other_tools_read_the_tables(tmp_path):
    Store(tmp_path / "s").add([scene(7, scores=np.array([0.5, 1.0]), relation_scores=[0.5]), scene(8)])
    rows = duckdb.sql(
        f"SELECT key, predicate, subject_score * object_score * predicate_score FROM '{tmp_path}/s/relations-*.parquet' JOIN '{tmp_path}/s/images-*.parquet' USING (image) ORDER BY key"
    ).fetchall()
    assert rows == [("7", "riding", 0.25), ("8", "riding", 1.0)]


@pytest.mark.parametrize("damage", ["manifest", "version", "missing", "cut"])
def test_a_broken_store_is_one_line(tmp_path, damage):
    folder = tmp_path / "s"
    Store(folder).add([scene(1)])
    manifest, part = folder / "store.json", folder / "relations-000001.parquet"
    if damage == "manifest":
        manifest.write_text('{"scenegpi_store": 1, "parts": ["../../etc"]}')
    elif damage == "version":
        manifest.write_text('{"scenegpi_store": 2}')
    elif damage == "missing":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(DataError) as error:
        Store(folder).search("man riding horse")
    assert "\n" not in str(error.value)


def test_not_a_store(tmp_path):
    with pytest.raises(DataError, match="is not a store"):
        Store(tmp_path).search("man")


def test_what_another_process_adds_is_seen(tmp_path):
    writer, reader = Store(tmp_path / "s"), Store(tmp_path / "s")
    writer.add([scene(1)])
    assert len(reader) == 1
    time.sleep(0.01)
    writer.add([scene(2)])
    assert len(reader) == 2


def test_photos_are_found_in_their_folders_only(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"x")
    (tmp_path / "secret.jpg").write_bytes(b"x")
    store = Store(tmp_path / "s")
    store.add(
        [scene(1, file="a.jpg"), scene(2, file="../secret.jpg"), scene(3, file=str(tmp_path / "secret.jpg"))],
        [tmp_path / "photos"],
    )
    found = {hit.key: store.photo(hit) for hit in store.images()}
    assert found == {"1": tmp_path / "photos" / "a.jpg", "2": None, "3": None}


def test_a_query_that_takes_too_long_is_ended(tmp_path):
    store = Store(tmp_path / "s", seconds=0.05)
    labels = ["man"] * 40
    boxes = [[i, 0, i + 9, 9] for i in range(40)]
    rows = [(i, j, "riding") for i in range(40) for j in range(40)]
    store.add([SceneGraph(boxes, labels, WORDS, rows, image_id=k) for k in range(4)])
    slow = " and ".join(f"?{a} riding ?{b}" for a, b in zip("abcdef", "bcdefg", strict=True))
    with pytest.raises(DataError, match=r"takes more than 0\.05 s"):
        store.search(slow)
    store.seconds = None
    assert store.search("man riding man").images == 4
