"""The journal: what was appended is there after any cut of the end; damage is an error and changes nothing."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenegpi.bulk.journal import Journal
from scenegpi.errors import DataError

ROWS = [{"key": "a", "n": 1}, {"key": "é\n\udc80", "n": [1.5, None]}, {"key": "c" * 70_000}]


def read(path) -> list[dict]:
    with Journal(path) as journal:
        return [row for _, row in journal.rows()]


def test_written_is_read_and_numbered(tmp_path):
    with Journal(tmp_path / "j") as journal:
        assert list(journal.rows()) == []
        journal.append(ROWS[:1])
        journal.append([])
        journal.append(ROWS[1:])
        assert list(journal.rows()) == list(enumerate(ROWS, 1))
    assert read(tmp_path / "j") == ROWS


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(0, 200))
def test_a_file_cut_anywhere_keeps_its_complete_lines(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("j") / "j"
    with Journal(path) as journal:
        journal.append(ROWS[:2])
    data = path.read_bytes()[: max(0, len(path.read_bytes()) - cut)]
    path.write_bytes(data)
    kept = data[: data.rfind(b"\n") + 1]
    assert read(path) == ROWS[: kept.count(b"\n")]
    assert path.read_bytes() == kept
    with Journal(path) as journal:
        journal.append([{"key": "new"}])
    assert read(path) == [*ROWS[: kept.count(b"\n")], {"key": "new"}]


def test_a_long_torn_line_and_zeros_are_cut(tmp_path):
    for tail in (b'{"key": "' + b"x" * 200_000, b"\0" * 300):
        (tmp_path / "j").write_bytes(b'{"key":"a"}\n' + tail)
        assert read(tmp_path / "j") == [{"key": "a"}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"key":"a"}\n{"key":"b"\n', "line 2: damaged"),  # complete and damaged, at the end
        (b'{"key"\xff"a"}\n{"key":"b"}\n', "line 1: damaged"),
        (b"[1]\n", "line 1: damaged (expected a JSON object"),
        (b"a diary of somebody else", "its last line"),
        (b"foreign\n", "line 1: damaged"),
    ],
)
def test_damage_is_named_and_nothing_is_lost(tmp_path, content, message):
    path = tmp_path / "j"
    path.write_bytes(content)
    with pytest.raises(DataError) as found:
        read(path)
    assert message in str(found.value)
    assert str(path) in str(found.value)
    assert path.read_bytes() == content


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    def full(handle, data):
        write(handle, data[:7])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write = os.write
    with Journal(tmp_path / "j") as journal:
        journal.append(ROWS[:1])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(DataError, match="No space left"):
                journal.append(ROWS[1:])
        assert read(tmp_path / "j") == ROWS[:1]
        journal.append(ROWS[1:])
    assert read(tmp_path / "j") == ROWS


def test_replacing_is_whole_or_nothing_and_appending_goes_on(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.append(ROWS)

        def broken():
            yield ROWS[0]
            raise OSError(errno.ENOSPC, "full")

        with pytest.raises(DataError):
            journal.replace(broken())
        journal.append([{"key": "d"}])
        assert [row["key"][:1] for _, row in journal.rows()] == ["a", "é", "c", "d"]
        journal.replace(row for number, row in journal.rows() if number != 2)
        journal.append([{"key": "e"}])
    assert [row["key"][:1] for row in read(tmp_path / "j")] == ["a", "c", "d", "e"]


def test_links_and_devices_are_refused(tmp_path):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "loop", "pipe"):
        with pytest.raises(DataError, match=name):
            Journal(tmp_path / name)
    assert (tmp_path / "victim").read_text() == "mine"
