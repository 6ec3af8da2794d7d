"""Names from outside neither style nor steer the terminal, whatever prints them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from models.model_cases import small_model
from scenegpi.cli import app
from scenegpi.commands.terminal import make_console, say, say_json
from scenegpi.models import save_model

NASTY = "[red]x[/red] [/] \x1b[31m \x9b2J \u202e :smile:"


def test_say_escapes_what_a_terminal_would_act_on(capsys):
    say(f"a {NASTY}\nb")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "b"
    assert "[red]x[/red] [/]" in lines[0]
    assert ":smile:" in lines[0]
    assert lines[0].isprintable()
    say(NASTY, error=True)
    assert "[red]" in capsys.readouterr().err


def test_json_on_the_terminal_reads_back_and_is_harmless(capsys):
    data = {NASTY: [NASTY, 1.5, None, "é"]}
    say_json(data)
    text = capsys.readouterr().out
    assert json.loads(text) == data
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "é" in text


def test_a_console_takes_brackets_for_brackets(capsys):
    make_console().print("[bold]a[/bold] [/] :smile:")
    assert capsys.readouterr().out.strip() == "[bold]a[/bold] [/] :smile:"


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_the_card_of_a_foreign_model(tmp_path, words):
    folder = save_model(small_model("baseline"), tmp_path / "[m]")
    (folder / "README.md").write_text(f"# {NASTY}\n\ntext {NASTY}\n", encoding="utf-8")
    (folder / "metrics.json").write_text(json.dumps({NASTY: {"figures": {"R@50": 0.5}}}))
    done = CliRunner().invoke(app, ["models", str(folder), *words])
    assert done.exit_code == 0, done.output
    assert "\x1b[31m" not in done.output
    assert "\x9b" not in done.output
