"""`scenegpi serve` refuses in one line what can't be served, and the page about it runs; the rest is in tests/serve."""

from __future__ import annotations

import socket

import pytest
import uvicorn
from typer.testing import CliRunner

from pages import run_page
from scenegpi.cli import app
from scenegpi.data import open_dataset
from scenegpi.data.jsonl import write_jsonl
from scenegpi.errors import DataError
from serve.serve_cases import running, scenes


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
    assert "cannot listen on" in refused("--host", "300.1.1.1")


@pytest.mark.parametrize("text", ["[]", '{"objects": ["a", "a"]}', "{"])
def test_names_that_are_none(tmp_path, text):
    (tmp_path / "words.json").write_text(text)
    refused("--port", 0, "--names", tmp_path / "words.json")


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    """Its servers start, and stop as soon as they have; its Python talks to one that goes on."""
    monkeypatch.chdir(tmp_path)
    drawn = scenes(tmp_path / "scenes", 6)
    (drawn / "images").rename(tmp_path / "photos")
    write_jsonl("annotations.jsonl", open_dataset(drawn))
    run, started = uvicorn.Server.run, []

    def run_and_stop(server, sockets):
        server.should_exit = True
        run(server, sockets)
        started.append(server.started)

    with running({}) as (url, _):
        monkeypatch.setattr(uvicorn.Server, "run", run_and_stop)
        run_page(
            "studio.md",
            {"http://127.0.0.1:8000": url},
            {"scenegpi serve": ["--port", "0", "--no-open"]},
        )
    assert started == [True, True]
    assert (tmp_path / "own" / "model" / "model.safetensors").is_file()  # trained on what was annotated
    assert "wearing" in capsys.readouterr().out
