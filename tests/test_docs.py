"""The pages say what is true: their commands and their Python run, options that they name exist, links lead somewhere."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import typer

from conftest import ROOT
from metrics.metrics_cases import npz_arrays
from pages import BLOCK, NOT_RUN, PAGES, blocks, commands, mentioned, run_page
from scenegpi import SceneGraph
from scenegpi.cli import app
from scenegpi.data import open_dataset, sample_path, write_jsonl
from scenegpi.metrics import Protocol, scene_graph_recall
from scenegpi.models import BaselineConfig, ModelConfig, build_model, save_model
from scenegpi.models.shipped import model_vocabulary
from scenegpi.paper.rendered import render_folder

RUN_ELSEWHERE = {
    "README.md": "commands/test_predict_docs.py",
    "detectors.md": "commands/test_predict_docs.py",
    "layers.md": "gpi/test_docs.py",
    "predict.md": "commands/test_predict_docs.py",
    "report.md": "viz/test_report_docs.py",
    "search.md": "commands/test_search.py",
    "studio.md": "commands/test_serve.py",
    "vision.md": "vision/test_docs.py",
    **dict.fromkeys(
        ["photos.md", "data-set.md", "papers.md", "other-graphs.md", "application.md"], "commands/test_users.py"
    ),
}
OF_OTHERS = {"--help", "--end2end", "--max-wh", "--no-deps", "--head"}
"""Options of every command, of YOLOv7's export, of pip, of ray."""
CHANGELOG = ROOT / "CHANGELOG.md"
UNWRAPPED = ("systems.md", "table.md", "vg150-photos.md")
"""Pages that programs write, in part."""
QUICK = ["--epochs", "2"]
CAPTIONS = "a brown dog runs\na man wearing a hat\na dog in the street\n" * 8


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages") / "scenes"
    render_folder(folder, 24, seed=3)
    return folder


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_training():
    run_page("train.md")
    assert Path("photos/model/model.safetensors").is_file()


def test_data_sets():
    assert "data" in run_page("data.md", {"DATA": sample_path()})
    assert {path.name for path in Path().iterdir()} >= {"scene.png", "graphs.jsonl", "coco.json"}


def test_models(scenes):
    run_page("models.md", {"DATA": scenes}, {"scenegpi train": QUICK})
    assert Path("report.html").is_file()


def test_calibration():
    assert run_page("calibration.md")["model"]


def test_compared_systems(scenes):
    Path("captions.txt").write_text(CAPTIONS)
    run_page("systems.md", {"DATA": scenes}, {"scenegpi train": QUICK, "scenegpi words train": QUICK})
    assert Path("words.safetensors").is_file()


def test_words():
    Path("captions.txt").write_text(CAPTIONS)
    Path("glove.6B.300d.txt").write_text("man 1 0 0.5\nhat 0 1 0.25\n")
    found = run_page("words.md", added={"scenegpi words train": QUICK})
    assert found["words"].dim > 3


def test_rendered_scenes(scenes):
    shutil.copytree(scenes, "drawn")
    Path("small.toml").write_text("\n".join(blocks("train.md", "toml")[1].splitlines()))
    run_page(
        "rendered.md",
        {"1000": 12, "--data scenes": "--data drawn"},
        {"scenegpi train --use-photos": ["--config", "small.toml"]},
    )
    assert Path("run/model/model.safetensors").is_file()


def test_labelling():
    run_page("labelling.md", {"docs/lab/labelling-results.json": ROOT / "docs" / "lab" / "labelling-results.json"})
    assert Path("docs/images/labelling.png").is_file()


def test_metrics(scenes):
    """Its examples with answers are run by metrics/test_docs.py."""
    np.savez("predictions.npz", **npz_arrays(1, 8))
    truth = open_dataset(scenes, split="test")
    sure = (graph.replace(relation_scores=np.full(len(graph.relations), 0.9)) for graph in truth)
    write_jsonl("predictions.jsonl", sure)
    target = {"boxes": [[0, 0, 9, 9], [5, 5, 30, 30]], "labels": [1, 2], "relations": [[0, 1, 2]]}
    ours = scene_graph_recall([{}], [target], Protocol("predcls"), predicates=2)
    assert "table" in run_page("metrics.md", {"vg150": scenes}, names={"result": ours})
    assert json.loads(Path("figures.json").read_text())["figures"]["R@50"] > 0


@pytest.mark.skipif(not all(map(find_spec, ("onnx", "onnxruntime"))), reason="needs the extra [onnx]")
def test_onnx():
    """With a narrow model, which is exported in seconds."""
    write_jsonl("boxes.jsonl", open_dataset(sample_path()))
    words = model_vocabulary("vg150-layout")
    save_model(build_model(ModelConfig(BaselineConfig(hidden=8)), words).eval(), Path("narrow"))
    assert "session" in run_page("onnx.md", {"vg150-layout": "narrow"})


def test_many_images(scenes):
    parquet = pytest.importorskip("pyarrow.parquet")
    graphs = list(open_dataset(sample_path()))
    table = {"source": [str(k) for k in range(len(graphs))], "graph": [graph.to_json() for graph in graphs]}
    parquet.write_table(pytest.importorskip("pyarrow").table(table), "boxes.parquet")
    shutil.copytree(scenes / "images", "clip")  # frames of a video may also be pictures in a folder
    run_page("scale.md", {"--jobs 8": "--jobs 1", "video.mp4": "clip"})
    assert Path("graphs/predictions.jsonl").is_file()


def test_the_example_of_a_graph():
    (text,) = blocks("formats.md", "json")
    assert str(SceneGraph.from_json(text).triplets()[0]) == "man - wearing - hat (0.504)"


def test_every_page_with_code_is_run():
    here = Path(__file__).read_text()
    for page in PAGES:
        if not {kind for kind, _ in BLOCK.findall(page.read_text())} & {"bash", "python"}:
            continue
        by = RUN_ELSEWHERE.get(page.name)
        assert page.name in (here if by is None else (ROOT / "tests" / by).read_text()), f"{page.name} is not run"


def test_what_is_not_run_is_there():
    lines = [line for page in PAGES for line in commands(page.name)]
    for pattern in NOT_RUN:
        assert any(re.match(pattern, line) for line in lines), f"no page has a command like {pattern}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_exist(page):
    """Every command that a page mentions, also of benchmarks that take hours, with its options."""
    for line in mentioned(page):
        words = shlex.split(line)
        named = {word.partition("=")[0] for word in words if re.match(r"--\w", word)}
        if words[0] == "scenegpi":
            known = options_of(words[1:])
        elif words[0] == "python":
            known = set(re.findall(r'"(--[\w-]+)"', (ROOT / words[1]).read_text()))
        else:
            continue
        assert named <= known | {"--help"}, f"{line}: no option {named - known}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_in_running_text_exist(page):
    """An option that is named without its command is one of some command, or of a benchmark or a tool."""
    named = set(
        re.findall(r"(?<![\w-])--[a-z][\w-]*", " ".join(re.findall(r"`([^`\n]+)`", BLOCK.sub("", page.read_text()))))
    )
    programs = [path.read_text() for folder in ("benchmarks", "tools") for path in (ROOT / folder).glob("*.py")]
    known = every_option(whole_program()) | set(re.findall(r'"(--[\w-]+)"', "".join(programs)))
    assert named <= known | OF_OTHERS


WRAPPED = [CHANGELOG, *(page for page in PAGES if page.name not in UNWRAPPED)]


@pytest.mark.parametrize("page", WRAPPED, ids=lambda page: page.name)
def test_prose_is_wrapped(page):
    """Tables, pictures and commands keep their lines."""
    lines = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S).splitlines()
    assert not [line for line in lines if len(line) > 120 and not line.startswith(("|", "![", "    "))]


@cache
def whole_program() -> Any:
    return typer.main.get_command(app)


def every_option(command: Any) -> set[str]:
    """The options of a command and of the commands in it."""
    inner = [every_option(each) for each in getattr(command, "commands", {}).values()]
    return {option for each in command.params for option in [*each.opts, *each.secondary_opts]}.union(*inner)


def options_of(words: list[str]) -> set[str]:
    """The options of the command that words begin with."""
    command = whole_program()
    for word in words:
        if not hasattr(command, "get_command"):
            break
        found = command.get_command(click.Context(command), word)
        assert found is not None, f"no command {' '.join(words)}"
        command = found
    return {option for each in command.params for option in [*each.opts, *each.secondary_opts]}


@pytest.mark.parametrize("page", [*PAGES, CHANGELOG], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", BLOCK.sub("", page.read_text())):
        if target.startswith("http"):
            continue
        there = page.parent / target if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}
