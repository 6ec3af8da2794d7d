"""The command line as a person meets it: output, exit codes, one-line errors, start-up without torch."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys

import pytest

import vg_files
from scenegpi import __version__, cli
from scenegpi.commands.models import PURPOSES
from scenegpi.data import DataError, open_dataset, sample_path
from scenegpi.models.shipped import shipped_models


@pytest.fixture
def scenegpi(monkeypatch, capsys):
    """Runs the program in this process, as `main` does but for signals; what it says: of an error, on stderr."""

    def run(*words, code=0):
        monkeypatch.setattr("scenegpi.cli._behave", list)
        monkeypatch.setattr("sys.argv", ["scenegpi", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        assert (end.value.code or 0) == code, said
        assert "Traceback" not in said.out + said.err
        return said.out if code == 0 or code == 1 else said.err

    return run


def test_help_and_version(scenegpi):
    assert "Scene graphs from images" in scenegpi("--help")
    assert scenegpi("--version") == f"scenegpi {__version__}\n"
    for words in (["data"], ["data", "stats"], ["data", "convert"], ["data", "show"], ["data", "validate"], ["demo"]):
        assert "Usage" in scenegpi(*words, "--help")


def test_flags_show_no_type(scenegpi):
    for words in ([], ["search"], ["data"], ["data", "show"], ["predict"], ["figure"]):
        said = scenegpi(*words, "--help")
        assert "--help" in said
        assert "<bool>" not in said


def test_a_name_with_a_dash_is_explained(tmp_path):
    (tmp_path / "-dash.jpg").touch()
    command = [sys.executable, "-c", "from scenegpi.cli import main; main()", "predict", "-dash.jpg"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert (
        done.stderr == "scenegpi: -dash.jpg: a name that begins with a dash is read as an option; write ./-dash.jpg\n"
    )


def test_every_shipped_model_says_what_it_is_for(scenegpi):
    said = scenegpi("models")
    for name in shipped_models():
        assert name in said
        assert PURPOSES[name]


def test_start_up_does_not_import_torch_or_numpy():
    code = (
        "import sys; from scenegpi.cli import app; print({'torch', 'numpy', 'h5py', 'matplotlib'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_data_commands_do_not_import_torch():
    code = (
        "import sys; import scenegpi.data, scenegpi.viz.picture, scenegpi.viz.characters; from scenegpi.data import *; "
    )
    code += "print({'torch', 'http', 'xml.sax', 'transformers', 'duckdb', 'pandas'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_stats(tmp_path, scenegpi):
    folder = vg_files.write(tmp_path / "vg")
    text = scenegpi("data", "stats", folder)
    for part in ("images", "2 train, 1 test", "boxes", "wearing", "mean 1.7, median 2, 0 to 3"):
        assert part in text
    figures = json.loads(scenegpi("data", "stats", folder, "--json", "--split", "train"))
    assert (figures["images"], figures["boxes"], figures["predicates"]) == (2, 2, {"on": 1, "wearing": 1})


def test_validate_exit_codes(tmp_path, scenegpi):
    good = vg_files.write(tmp_path / "good")
    assert scenegpi("data", "validate", good).splitlines()[-1] == f"{good}: 0 errors, 1 warning"
    labels = vg_files.arrays()["labels"]
    labels[3] = 77
    bad = vg_files.write(tmp_path / "bad", {"labels": labels})
    text = scenegpi("data", "validate", bad, code=1)
    assert f"error: {bad}/VG-SGG.h5: image 13: labels[3]: 77 is not a label" in text
    assert "1 error, 1 warning, 1 image can't be used" in text
    (bad / "VG-SGG.h5").write_bytes(b"x")
    text = scenegpi("data", "validate", bad, code=2)
    assert text.startswith(f"scenegpi: {bad}/VG-SGG.h5: not a readable HDF5 file")
    assert text.count("\n") == 1


def test_convert_and_what_is_left_out(tmp_path, scenegpi):
    labels = vg_files.arrays()["labels"]
    labels[3] = 77
    bad = vg_files.write(tmp_path / "bad", {"labels": labels})
    assert "2 images written" in scenegpi("data", "convert", bad, tmp_path / "x.jsonl")
    assert len(open_dataset(tmp_path / "x.jsonl")) == 2
    assert "exists already" in scenegpi("data", "convert", bad, tmp_path / "x.jsonl", code=2)
    assert "2 images written" in scenegpi("data", "convert", bad, tmp_path / "x.jsonl", "--force")
    assert "labels[3]" in scenegpi("data", "convert", bad, tmp_path / "y.jsonl", "--strict", code=2)
    assert not (tmp_path / "y.jsonl").exists()


def test_show(tmp_path, scenegpi):
    text = scenegpi("data", "show")
    assert "man    riding      horse" in text
    assert "┌" in text
    text = scenegpi("data", "show", sample_path(), "3", "--out", tmp_path / "x.png")
    assert "parked on" in text
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "no image with id '9'" in scenegpi("data", "show", sample_path(), "9", code=2)
    assert "the data set has 3 images, counted from 0" in scenegpi(
        "data", "show", sample_path(), "--index", "3", code=2
    )
    assert "expected a .png or .svg" in scenegpi("data", "show", "--out", tmp_path / "x.gif", code=2)


def test_demo(tmp_path, scenegpi):
    text = scenegpi("demo", "--out", tmp_path)
    assert text.count("read back the same, 0 defects") == 3
    assert {path.name for path in tmp_path.glob("*.png")} == {
        "grace_hopper.png",
        "grace_hopper-boxes.png",
        *(f"predicted-{i}.png" for i in (1, 2, 3)),
    }
    assert "DIFFER" not in text
    given = text.partition("a photo and boxes in")[2]
    assert re.search(r"\(0, 5\) to \(512, 600\): (person|man|woman)", given)


@pytest.mark.parametrize("words", [["data", "stats", "nowhere"], ["data", "stats", sample_path(), "--split", "dev"]])
def test_errors_are_one_line(words, scenegpi):
    text = scenegpi(*words, code=2)
    assert text.startswith("scenegpi: ")
    assert text.count("\n") == 1


def hostile(tmp_path):
    from scenegpi import SceneGraph, Vocabulary
    from scenegpi.data import write_jsonl

    words = Vocabulary(["[/red]", ":dog: $\\bad$", "a\nb\x1b[2J"], ["[bold]on", "$x"])
    graph = SceneGraph(
        [[0, 0, 5, 5]] * 3, [0, 1, 2], words, [[0, 1, 0], [1, 2, 1]], image_id="a\nb\x1b[2J", width=9, height=9
    )
    write_jsonl(tmp_path / "x.jsonl", [graph])
    return tmp_path / "x.jsonl"


def test_names_from_a_file_neither_style_nor_steer_the_terminal(tmp_path, scenegpi):
    path = hostile(tmp_path)
    text = scenegpi("data", "stats", path) + scenegpi("data", "show", path, "--out", tmp_path / "x.png")
    assert "\x1b" not in text
    for part in ("[/red]", ":dog: $\\bad$", "a\\nb\\x1b[2J", "[bold]on"):
        assert part in text
    data = path.read_text().replace("[0.0,0.0,5.0,5.0]", "[0.0,0.0,-5.0,5.0]", 1)
    path.write_text(data)
    text = scenegpi("data", "validate", path, code=1)
    assert text.count("\n") == 2
    assert "\x1b" not in text


def test_a_terminal_without_the_characters(tmp_path):
    command = [sys.executable, "-c", "from scenegpi.cli import main; main()", "data", "show"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"riding" in done.stdout


def test_pipes_and_full_disks():
    program = f"{sys.executable} -c 'from scenegpi.cli import main; main()' data show"
    for line, code in (
        (f"{program} | head -1 >&2; exit ${{PIPESTATUS[0]}}", (0, 141)),
        (f"{program} > /dev/full", (2,)),
    ):
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        assert done.returncode in code
        assert "Traceback" not in done.stderr
    assert done.stderr == "scenegpi: the output cannot be written (No space left on device)\n"


def test_stopped_midway_leaves_nothing(tmp_path):
    code = (
        "import os, signal; from scenegpi.cli import _behave; from scenegpi.data import *; _behave()\n"
        "def stop(graphs):\n"
        "    for graph in graphs:\n"
        "        yield graph\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        f"convert(open_dataset(sample_path()), {str(tmp_path / 'x.jsonl')!r}, watch=stop)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 143
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (RuntimeError("x\x1b[2J"), 3, r"scenegpi: internal error (please report it): RuntimeError: x\x1b[2J; "),
        (DataError("a.json", "b\nc"), 2, r"scenegpi: a.json: b\nc"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "scenegpi: the output cannot be written (No space left"),
        (KeyboardInterrupt(), 130, ""),
        (SystemExit(143), 143, ""),
    ],
)
def test_every_end_has_its_exit_code_and_one_line(monkeypatch, capsys, error, code, said):
    def stop():
        raise error

    monkeypatch.setattr(cli, "app", stop)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["scenegpi"])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.delenv("SCENEGPI_DEBUG", raising=False)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    monkeypatch.undo()
    text = capsys.readouterr().err
    assert ended.value.code == code
    assert text.startswith(said)
    assert text.count("\n") == bool(said)


def test_debug_shows_the_traceback():
    command = [sys.executable, "-c", "from scenegpi.cli import main; main()", "--debug", "data", "stats", "nowhere"]
    assert "Traceback" in subprocess.run(command, capture_output=True, text=True).stderr
