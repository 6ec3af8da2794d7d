"""`scenegpi serve` refuses in one line what can't be served; the rest is tested in tests/serve."""

from __future__ import annotations

import socket

import pytest
from typer.testing import CliRunner

from scenegpi.cli import app
from scenegpi.errors import DataError


def refused(*words) -> str:
    done = CliRunner().invoke(app, ["serve", *map(str, words), "--no-open"])
    assert isinstance(done.exception, DataError), done.output
    assert "\n" not in str(done.exception)
    return str(done.exception)


def test_a_path_that_is_not_there(tmp_path):
    assert "no such file" in refused(tmp_path / "nothing", "--port", 0)


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "--port 0" in refused("--port", taken.getsockname()[1])


def test_a_host_that_is_none():
    assert "cannot be listened on" in refused("--host", "300.1.1.1")


@pytest.mark.parametrize("text", ["[]", '{"objects": ["a", "a"]}', "{"])
def test_names_that_are_none(tmp_path, text):
    (tmp_path / "words.json").write_text(text)
    refused("--port", 0, "--names", tmp_path / "words.json")
