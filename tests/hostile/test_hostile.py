"""Small files that once broke the tool: each is answered in one clear line, in little memory, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conftest import ROOT

FILES = ROOT.parent / "shared" / "fixtures" / "hostile"
MEGABYTES = 700
PATIENCE = 120  # seconds; a hang, not a slow machine
pytestmark = pytest.mark.skipif(not FILES.is_dir(), reason=f"needs {FILES}")

CASES = {
    **{f"h5_bomb{k}": (["data", "stats", FILES / f"h5_bomb{k}"], {2}) for k in (1, 2, 3)},
    "h5_float16": (["data", "stats", FILES / "h5_float16"], {0, 1, 2}),
    "npz_U0": (["eval", FILES / "npz_U0_bomb.npz", "--task", "predcls"], {2}),
    "evalnpz_1_43": (["eval", FILES / "evalnpz_1_43" / "x.npz", "--task", "sgdet"], {0, 2}),
    "evalnpz_1_53": (["eval", FILES / "evalnpz_1_53" / "x.npz", "--task", "sgdet"], {0, 2}),
    "vgjson_2_0": (["data", "validate", FILES / "vgjson_2_0"], {0, 1, 2}),
    "exif_text": (["data", "validate", FILES / "exif_text_yolo"], {0, 1, 2}),
    "glove_markup": (["words", "neighbours", FILES / "glove_markup.txt", "nothing"], {2}),
    "eval_markup": (
        ["eval", FILES / "eval_markup" / "pred.jsonl", "--data", FILES / "eval_markup" / "x[" / "y].jsonl", "--task", "sgdet"],
        {0, 1, 2},
    ),
    "poison": (["data", "validate", FILES / "poison_image.jsonl"], {1}),
}  # fmt: skip


WATCHED = """
import atexit, os
def tell():
    with open("/proc/self/status") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    with open(os.environ["PEAK"], "w") as file:
        file.write(peak)
atexit.register(tell)
from scenegpi.cli import main
main()
"""
"""The command, which tells its own peak: what its parent is told (ru_maxrss) counts the parent's memory, too."""


def run(words: list[object]) -> tuple[int, str, float]:
    """Exit code, what was said, and the peak memory in MB of a command in a process of its own."""
    code = WATCHED if sys.platform.startswith("linux") else "from scenegpi.cli import main; main()"
    with tempfile.NamedTemporaryFile() as peak:
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
            env=os.environ | {"COLUMNS": "300", "PEAK": peak.name},
        )
        used = float(Path(peak.name).read_text() or "inf") if code == WATCHED else 0.0
    return done.returncode, done.stdout.decode(errors="replace"), used / 1024


@pytest.mark.parametrize("name", list(CASES))
def test_the_answer_is_one_line(name):
    """Bombs are refused before they are unpacked: in little memory."""
    words, codes = CASES[name]
    code, said, peak = run(words)
    assert code in codes, said
    assert "Traceback" not in said
    assert "internal error" not in said
    assert "Warning" not in said
    if code == 2:
        assert said.count("scenegpi: ") == 1, said
    assert peak < MEGABYTES, said


@pytest.mark.parametrize("name", ["bigla.png", "big16.png", "jpeg_scans2000.jpg"])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_large_photos_are_read_small_or_refused(name):
    code = (
        "import sys\n"
        "from scenegpi.vision.photos import open_photo\n"
        "from scenegpi.errors import DataError\n"
        "try: print(open_photo(sys.argv[1]).shape)\n"
        "except DataError as error: print(error)\n"
        "lines = open('/proc/self/status').read().splitlines()\n"  # ru_maxrss would count the parent's memory
        "print(next(int(line.split()[1]) // 1024 for line in lines if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(FILES / name)], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    said, peak = done.stdout.splitlines()
    assert int(peak) < 600, said


def test_one_poisonous_image_costs_itself_alone(tmp_path):
    words = ["predict", "--boxes", FILES / "poison_image.jsonl", "--out", tmp_path / "out", "--formats", "none"]
    for _ in range(2):
        code, said, _ = run(words)
        assert code == 1, said
        assert "objects[0].box" in said
    count = len((FILES / "poison_image.jsonl").read_text().splitlines())
    assert len((tmp_path / "out" / "predictions.jsonl").read_text().splitlines()) == count - 1


def test_photos_of_one_name_get_their_own_boxes(tmp_path):
    folder = FILES / "same_name"
    words = ["predict", folder / "two", "--boxes", folder / "two.jsonl", "--out", tmp_path / "out", "--formats", "none"]
    code, said, _ = run(words)
    assert code == 0, said
    rows = [json.loads(line) for line in (tmp_path / "out" / "predictions.jsonl").read_text().splitlines()]
    assert {Path(row["source"]).parent.name: len(row["objects"]) for row in rows} == {"a": 2, "b": 3}


def test_equal_stems_in_two_folders_are_all_kept(tmp_path):
    words = [
        "predict",
        "--boxes",
        FILES / "yolo_same_stems",
        "--names",
        "coco",
        "--out",
        tmp_path / "out",
        "--formats",
        "none",
    ]
    for _ in range(2):
        code, said, _ = run([*words, "--labels", "believed", "--model", "vg150-layout"])
        assert code == 0, said
    assert len((tmp_path / "out" / "predictions.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize("kind", ["fifo", "zero"])
@pytest.mark.parametrize("what", ["photo", "card", "boxes"])
def test_pipes_and_devices_are_refused(tmp_path, kind, what):
    odd = tmp_path / {"photo": "a.jpg", "card": "README.md", "boxes": "boxes.jsonl"}[what]
    if kind == "fifo":
        os.mkfifo(odd)
    else:
        odd.symlink_to("/dev/zero")
    words = {
        "photo": [
            "predict",
            odd,
            "--boxes",
            FILES / "same_name" / "two.jsonl",
            "--labels",
            "found",
            "--out",
            tmp_path / "o",
        ],
        "card": ["models", tmp_path],
        "boxes": ["predict", "--boxes", odd, "--out", tmp_path / "o"],
    }[what]
    code, said, _ = run(words)
    assert code in (1, 2), said
    assert "not a regular file" in said or "no boxes were given" in said, said
