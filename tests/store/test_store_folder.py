"""A store on disk: appended to and replaced whole or not at all, readable by others, closed to what is broken."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scenegpi import SceneGraph, Vocabulary
from scenegpi.errors import DataError
from scenegpi.store import QueryError, Store
from scenegpi.store.store import Stop

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
    assert len(list((tmp_path / "s").glob("*.parquet"))) == 8 * len(parts)


def test_a_store_without_attributes_is_of_an_earlier_version(tmp_path):
    store = Store(tmp_path / "s")
    store.add([scene(1), scene(2)])
    for path in (tmp_path / "s").glob("attribute*"):
        path.unlink()
    assert Store(tmp_path / "s").graph(0).attributes is None
    assert Store(tmp_path / "s").add([scene(2, attributes=[["red"], []])]) == (1, 1)
    assert keys(Store(tmp_path / "s"), "red man riding horse") == {"2"}


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


TABLES = ("images", "objects", "relations", "triplets", "labels")


def without_values(path, column):
    """A part whose column is empty."""
    table = pq.read_table(path)
    at = table.column_names.index(column)
    pq.write_table(table.set_column(at, column, pa.nulls(len(table), table.schema.field(column).type)), path)


def renamed(path):
    table = pq.read_table(path)
    pq.write_table(table.rename_columns([f"{name}_" for name in table.column_names]), path)


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "flipped": lambda path: path.write_bytes(bytes(255 - byte for byte in path.read_bytes())),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "foreign": renamed,
    "nulls": lambda path: without_values(path, pq.read_schema(path).names[0]),
    "late nulls": lambda path: without_values(path, pq.read_schema(path).names[-1]),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_part_is_one_line_in_search_and_in_index(tmp_path, damage, table):
    folder = tmp_path / "s"
    Store(folder).add([scene(1), scene(2)])
    DAMAGES[damage](folder / f"{table}-000001.parquet")
    before = {path.name for path in folder.iterdir()}
    for act in (lambda store: store.search("man riding horse"), lambda store: store.add([scene(1)])):
        with pytest.raises(DataError) as error:
            act(Store(folder))
        assert "\n" not in str(error.value)
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scenegpi_store", 2),
        ("scenegpi_store", True),
        ("parts", ["../../etc"]),
        ("parts", [True]),
        ("parts", [1, 1]),
        ("parts", [10**30]),
        ("unused", [1]),
        ("unused", "1"),
        ("next_part", 1),
        ("next_part", 1e30),
        ("next_part", None),
        ("next_image", 1e30),
        ("next_image", 10**30),
        ("photos", [1]),
        ("vocabularies", []),
    ],
)
def test_odd_values_of_the_description_are_named(tmp_path, field, value):
    folder = tmp_path / "s"
    Store(folder).add([scene(1)])
    text = json.dumps(json.loads((folder / "store.json").read_text()) | {field: value})
    (folder / "store.json").write_text(text)
    for act in (lambda store: store.search("man riding horse"), lambda store: store.add([scene(2)])):
        with pytest.raises(DataError, match="version" if field == "scenegpi_store" else f"{field}|parts"):
            act(Store(folder))
    assert (folder / "store.json").read_text() == text


@pytest.mark.parametrize("value", [3, {"objects": [""]}, {"objects": ["dog", "dog"]}])
def test_a_damaged_vocabulary_is_named(tmp_path, value):
    folder = tmp_path / "s"
    Store(folder).add([scene(1)])
    text = json.dumps(json.loads((folder / "store.json").read_text()) | {"vocabularies": {"v-0123": value}})
    (folder / "store.json").write_text(text)
    with pytest.raises(DataError, match=r"store\.json: vocabulary"):
        Store(folder).vocabulary  # noqa: B018


def test_numbers_of_images_are_not_given_twice(tmp_path):
    folder = tmp_path / "s"
    Store(folder).add([scene(1), scene(2)])
    data = json.loads((folder / "store.json").read_text()) | {"next_image": 1}
    (folder / "store.json").write_text(json.dumps(data))
    with pytest.raises(DataError, match="next_image: 1, but the last image is 1"):
        Store(folder).add([scene(3)])


def test_files_that_are_not_ours_stay(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    names = ["sales-20240101.parquet", "shard-000001.parquet", "images-000001.parquet", "relations-000003.parquet"]
    names += [".film.mkv.part", ".relations-000002.parquet.part", "objects-000099.parquet"]
    for name in names:
        (folder / name).write_text(f"mine: {name}")
    store = Store(folder)
    for n in range(3):
        store.add([scene(1), scene(n + 2)])
    with pytest.raises(DataError, match="duplicated"):
        store.add([scene(1), scene(1)])
    assert keys(store, "man") == {"1", "2", "3", "4"}
    assert {name: (folder / name).read_text() for name in names} == {name: f"mine: {name}" for name in names}


@pytest.mark.parametrize("name", ["y [1]", "n?", "st*", "it's", "label=cat", "[a-z]"])
def test_the_name_of_a_folder_is_taken_literally(tmp_path, name):
    for other in ("y 1", "n1", "st1", "q"):
        Store(tmp_path / other / "s").add([scene("other")])
    store = Store(tmp_path / name / "s")
    store.add([scene(1)])
    store.add([scene(1), scene(2)])
    assert keys(store, "man") == {"1", "2"}
    assert len(Store(tmp_path / "q" / "s")) == 1


def test_a_folder_whose_name_is_not_utf_8_is_refused(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    with pytest.raises(DataError, match="must be UTF-8"):
        Store(folder).add([scene(1)])
    assert not folder.exists()
    Store(tmp_path / "s").add([scene(1)])
    (tmp_path / "s").rename(folder)
    with pytest.raises(DataError, match="must be UTF-8"):
        Store(folder).search("man")


def test_parts_that_are_read_stay_until_nobody_reads(tmp_path):
    store, reader = Store(tmp_path / "s"), Store(tmp_path / "s")
    store.add([scene(1), scene(2)])
    with reader.snapshot():
        assert len(reader) == 2
        store.add([scene(1, ("man", "hat"), "wearing")])
        store.add([scene(2, ("man", "hat"), "wearing")])
        assert keys(reader, "man riding horse") == {"1", "2"}
        assert reader.graph(0).names == ["man", "horse"]
        assert len(list((tmp_path / "s").glob("images-*"))) > 2
    assert keys(reader, "man wearing hat") == {"1", "2"}
    store.add([scene(3)])
    assert len(list((tmp_path / "s").glob("*.parquet"))) == 8 * 3
    assert json.loads((tmp_path / "s" / "store.json").read_text())["unused"] == []


CHANGES = """
import sys
sys.path[:0] = [{tests!r}]
from scenegpi.store import Store
from store.test_store_folder import scene
for n in range(30):
    Store({folder!r}).add([scene(k, scores=[1, 0.5 + n / 100]) for k in range(n % 3, 20, 3)])
"""


def test_searches_while_images_are_replaced(tmp_path):
    folder = tmp_path / "s"
    Store(folder).add([scene(k) for k in range(20)])
    tests = os.path.dirname(os.path.dirname(__file__))
    process = subprocess.Popen([sys.executable, "-c", CHANGES.format(tests=tests, folder=str(folder))])
    store, count = Store(folder), 0
    while process.poll() is None or count < 20:
        with store.snapshot():
            answer = store.search("man riding horse", limit=100)
            assert set(store.graphs(hit.image for hit in answer.hits)) == {hit.image for hit in answer.hits}
        assert {hit.key for hit in answer.hits} == {str(k) for k in range(20)}
        count += 1
    assert process.wait() == 0


def test_a_full_disk_is_one_line_and_changes_nothing(tmp_path, monkeypatch):
    store = Store(tmp_path / "s")
    store.add([scene(1)])
    before = {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()}

    class Full:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, text, values=()):
            if text.startswith("COPY"):
                raise duckdb.IOException("IO Error: Could not write to file: No space left on device\nmore")
            return self.connection.execute(text, values)

        def __getattr__(self, name):
            return getattr(self.connection, name)

    monkeypatch.setattr("scenegpi.store.change.connect", lambda: Full(duckdb.connect()))
    with pytest.raises(DataError, match=r"No space left on device\); nothing was written$"):
        store.add([scene(2)])
    assert {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()} == before


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


@pytest.fixture
def dense(tmp_path):
    """A store of which a chain of six relations has 6.5e11 matches."""
    store = Store(tmp_path / "s", seconds=0.05)
    boxes = [[i, 0, i + 9, 9] for i in range(40)]
    rows = [(i, j, "riding") for i in range(40) for j in range(40)]
    store.add([SceneGraph(boxes, ["man"] * 40, WORDS, rows, image_id=k) for k in range(4)])
    return store


CHAIN = " and ".join(f"?{a} riding ?{b}" for a, b in zip("abcdef", "bcdefg", strict=True))


def test_a_query_that_takes_too_long_is_ended(dense, monkeypatch):
    monkeypatch.setattr("scenegpi.store.store.MOST_EXPECTED", float("inf"))
    with pytest.raises(DataError, match=r"took more than 0\.05 s"):
        dense.search(CHAIN)
    dense.seconds = None
    assert dense.search("man riding man").images == 4


def test_a_query_of_too_many_matches_is_not_begun_where_time_is_bounded(dense):
    dense.seconds = 3600.0
    with pytest.raises(QueryError, match=r"about 6\.6e\+11 matches"):
        dense.search(CHAIN)
    assert dense.search("?a riding ?b and ?b riding ?c").images == 4


def test_a_search_is_stopped_from_elsewhere_while_others_go_on(dense):
    dense.seconds = None  # nothing but the call ends it
    stop, ended = Stop(), []

    def search():
        with pytest.raises(DataError):
            dense.search(CHAIN, stop=stop)
        ended.append(True)

    thread = threading.Thread(target=search)
    thread.start()
    assert dense.search("man riding man").images == 4  # beside the slow one
    stop()
    thread.join()
    assert ended
