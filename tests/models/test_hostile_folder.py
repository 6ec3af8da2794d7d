"""A model folder from anywhere: what it asks for is bounded, and nothing in it can make a reader wait."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from models.model_cases import random_graphs, small_model
from scenegpi.cli import app
from scenegpi.data import write_jsonl
from scenegpi.errors import DataError
from scenegpi.models import load_model, save_model
from scenegpi.models.build import MAX_LABELS, MAX_PREDICATES
from scenegpi.models.config import MAX_WIDTH, BaselineConfig, ContextConfig, ModelConfig
from scenegpi.options import plain

MEASURE = """
import resource, sys, torch
from scenegpi.errors import DataError
from scenegpi.models.checkpoint import load_model
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load_model(sys.argv[1])
except DataError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


@pytest.mark.parametrize(("labels", "predicates"), [(MAX_LABELS, 3), (180, MAX_PREDICATES)])
def test_the_widest_model_that_can_be_asked_for_is_no_danger(labels, predicates, tmp_path):
    w = MAX_WIDTH
    widest = ModelConfig(
        BaselineConfig(hidden=w, layers=8, embedding=w, rank=w), ContextConfig(hidden=w, phi=w, alpha=w, words=w)
    )
    words = {"objects": [f"o{i}" for i in range(labels)], "predicates": [f"p{i}" for i in range(predicates)]}
    (tmp_path / "config.json").write_text(json.dumps({"format": 2, "model": plain(widest)}))
    (tmp_path / "vocabulary.json").write_text(json.dumps(words))
    save_file({"a": torch.zeros(1)}, tmp_path / "model.safetensors")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    kilobytes, _, said = done.stdout.partition(" ")
    assert "model.safetensors" in said
    assert int(kilobytes) < 1_000_000


def test_more_labels_or_predicates_are_refused(tmp_path):
    save_model(small_model("baseline"), tmp_path / "m")
    path = tmp_path / "m" / "vocabulary.json"
    for kind, count in (("objects", MAX_LABELS + 1), ("predicates", MAX_PREDICATES + 1)):
        words = {"objects": ["a"], "predicates": ["b"], kind: [f"n{i}" for i in range(count)]}
        path.write_text(json.dumps(words))
        with pytest.raises(DataError, match="too many"):
            load_model(tmp_path / "m")


def test_more_counts_than_there_are_cells_are_not_read(tmp_path):
    save_model(small_model("baseline"), tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    state = load_file(path)
    cells = next(key for key in state if key.endswith("counts.cells"))
    for name in (cells, cells.replace("cells", "values")):
        state[name] = torch.zeros(100_000, dtype=torch.int32)
    save_file(state, path)
    with pytest.raises(DataError, match=r"expected a list of at most 100 whole numbers"):
        load_model(tmp_path / "m")


def test_a_pipe_is_refused_not_waited_for(tmp_path):
    for name in ("config.json", "vocabulary.json", "model.safetensors", "README.md"):
        folder = save_model(small_model("baseline"), tmp_path / name)
        (folder / name).unlink()
        os.mkfifo(folder / name)
        if name == "README.md":
            caught = CliRunner().invoke(app, ["models", str(folder)]).exception
            assert isinstance(caught, DataError)
        else:
            with pytest.raises(DataError) as found:
                load_model(folder)
            caught = found.value
        assert "is not a regular file" in str(caught)


COMMANDS = {
    "models": ["models", "MODEL", "--json"],
    "predict": ["predict", "--boxes", "DATA", "--model", "MODEL", "--out", "OUT"],
    "eval": ["eval", "--data", "DATA", "--model", "MODEL", "--task", "predcls", "--json", "OUT.json"],
    "report": ["report", "MODEL", "--out", "OUT.html"],
    "train": ["train", "--data", "DATA", "--start", "MODEL", "--out", "OUT"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_whose_name_is_not_utf8_is_used_or_refused(command, tmp_path):
    folder = save_model(small_model("baseline"), tmp_path / "m", {"validation": {"figures": {"R@50": 0.5}}})
    folder = folder.rename(tmp_path / os.fsdecode(b"m\xff"))
    caught = called(command, tmp_path, folder).exception
    assert caught is None or (isinstance(caught, DataError) and "UTF-8" in str(caught) and str(caught).isprintable())


@pytest.mark.parametrize("command", ["models", "report"])
def test_a_figure_that_no_float_holds(command, tmp_path):
    folder = save_model(small_model("baseline"), tmp_path / "m")
    (folder / "metrics.json").write_text(json.dumps({"validation": {"figures": {"R@50": 10**400}}}))
    caught = called(command, tmp_path, folder).exception
    assert isinstance(caught, DataError)
    assert str(caught) == f"{folder / 'metrics.json'}: validation.figures.R@50: a whole number with 401 digits"


def called(command, tmp_path, folder):
    data = tmp_path / "data.jsonl"
    write_jsonl(data, random_graphs((2, 3)))
    names = {"MODEL": folder, "DATA": data, "OUT": tmp_path / "out", "OUT.json": tmp_path / "out.json"}
    names["OUT.html"] = tmp_path / "out.html"
    return CliRunner().invoke(app, [str(names.get(word, word)) for word in COMMANDS[command]])
