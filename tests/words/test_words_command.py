"""`scenegpi words`: writes what it says, shows neighbours, and loads no torch before it must."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from scenegpi.commands.words import app
from scenegpi.data import DataError
from scenegpi.words.vectors import WordVectors

CAPTIONS = "a brown dog runs\na brown cat runs\na man wearing a hat\na man wearing a coat\nthe street at night\n" * 8


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_train_then_look(tmp_path):
    captions, out = tmp_path / "captions.txt", tmp_path / "words.safetensors"
    captions.write_text(CAPTIONS)
    done = run("train", captions, "--out", out, "--dim", 5, "--epochs", 3)
    assert done.exit_code == 0, done.output
    assert "wrote" in done.output
    assert "wearing" in done.output
    words = WordVectors.load(out)
    assert words.dim == 5
    assert len(words) == 13
    shown = run("neighbours", out, "dog", "-k", 2)
    assert shown.exit_code == 0
    assert "dog" in shown.output
    unknown = run("neighbours", out, "dog", "zebra")
    assert isinstance(unknown.exception, DataError)
    assert "zebra" in str(unknown.exception)


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    captions, out = tmp_path / "captions.txt", tmp_path / "words.safetensors"
    captions.write_text(CAPTIONS)
    out.write_text("precious")
    assert isinstance(run("train", captions, "--out", out, "--epochs", 1).exception, DataError)
    assert out.read_text() == "precious"
    assert run("train", captions, "--out", out, "--dim", 2, "--epochs", 1, "--force").exit_code == 0


@pytest.mark.parametrize("module", ["commands.words", "words.vectors"])
def test_no_torch_at_import(module):
    code = f"import sys, scenegpi.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
