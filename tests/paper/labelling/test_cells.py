"""Cells: resumed runs give what uninterrupted ones give; files are whole or absent."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scenegpi.paper.labelling import experiment
from scenegpi.paper.labelling.experiment import Cell, finished_cell, run_cell, same_degree
from scenegpi.paper.labelling.graphs import Task
from scenegpi.paper.labelling.training import Recipe

TINY = Task(nodes=4, sets=2)
RECIPE = Recipe(steps=4, check_every=2, batch=4)
CELLS = [
    Cell("gpi", 10, 0, TINY, RECIPE, test=10, sizes=(3, 6), size_test=5),
    Cell("lstm", 10, 0, TINY, RECIPE, test=10, sizes=(3,), size_test=5),
    Cell("fc", 10, 0, TINY, RECIPE, test=10),
]
TIMES = ("wall_seconds", "cpu_seconds", "checks")


def _timeless(result: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in result.items() if key not in TIMES}


def results(cells: Sequence[Cell], folder: Path) -> list[dict[str, Any]]:
    return [result for result, _ in experiment.run(cells, folder)]


def test_a_cell_says_what_it_measured() -> None:
    result = run_cell(CELLS[0])
    assert result["order_gap"] < 1e-5
    assert [size["nodes"] for size in result["other_sizes"]] == [3, 6]
    assert result["steps"] == result["checks"][-1][0] == 4
    assert run_cell(CELLS[2])["order_gap"] > 1e-5


def test_resuming_skips_what_is_finished_and_ends_with_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, first = results(CELLS, tmp_path / "whole"), results(CELLS[:2], tmp_path / "resumed")
    ran: list[Cell] = []

    def counted(cell: Cell) -> dict[str, object]:
        ran.append(cell)
        return run_cell(cell)

    monkeypatch.setattr(experiment, "run_cell", counted)
    resumed = results(CELLS, tmp_path / "resumed")
    assert ran == CELLS[2:]
    assert resumed[:2] == first
    assert [_timeless(result) for result in resumed] == [_timeless(result) for result in whole]


def test_an_exception_keeps_the_cells_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_at_fc(cell: Cell) -> dict[str, object]:
        if cell.model == "fc":
            raise KeyboardInterrupt
        return run_cell(cell)

    monkeypatch.setattr(experiment, "run_cell", fails_at_fc)
    with pytest.raises(KeyboardInterrupt):
        results(CELLS, tmp_path)
    assert [finished_cell(tmp_path / f"{cell.key}.json") is not None for cell in CELLS] == [True, True, False]


KILLED = """
import sys
from pathlib import Path
import torch
from scenegpi.paper.labelling import experiment
from test_cells import CELLS
torch.set_num_threads(1)

for cell, _ in zip(CELLS, experiment.run(CELLS, Path(sys.argv[1]))):
    print(cell.key, flush=True)
    if cell == CELLS[1]:
        sys.stdin.read()
"""


def test_kill_9_loses_only_the_current_cell(tmp_path: Path) -> None:
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert [process.stdout.readline().strip() for _ in range(2)] == [cell.key for cell in CELLS[:2]]
        process.send_signal(signal.SIGKILL)
    finished = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert sorted(finished) == sorted(f"{cell.key}.json" for cell in CELLS[:2])
    assert [ran for _, ran in experiment.run(CELLS, tmp_path)] == [False, False, True]
    assert all((tmp_path / name).stat().st_mtime_ns == written for name, written in finished.items())


@pytest.mark.parametrize("content", ["", '{"accuracy": 0.', "[]", "{}"])
def test_damaged_files_are_run_again(tmp_path: Path, content: str) -> None:
    file = tmp_path / f"{CELLS[2].key}.json"
    file.write_text(content)
    assert finished_cell(file) is None
    results(CELLS[2:], tmp_path)
    assert finished_cell(file) is not None


def test_a_change_of_any_setting_is_another_cell() -> None:
    cell = CELLS[0]
    others = [
        replace(cell, model="fc"), replace(cell, samples=11), replace(cell, seed=1), replace(cell, test=11),
        replace(cell, sizes=()), replace(cell, size_test=6), replace(cell, task=replace(TINY, sets=3)),
        replace(cell, task=replace(TINY, edge_probability=0.4)), replace(cell, recipe=replace(RECIPE, batch=5)),
    ]  # fmt: skip
    assert len({cell.key, *(other.key for other in others)}) == len(others) + 1


@pytest.mark.parametrize(("nodes", "probability"), [(10, 0.5), (19, 0.25), (40, 4.5 / 39), (5, 1.0), (1, 1.0)])
def test_same_degree_keeps_the_mean_number_of_neighbours(nodes: int, probability: float) -> None:
    task = same_degree(Task(), nodes)
    assert (task.nodes, task.sets) == (nodes, 5)
    assert task.edge_probability == pytest.approx(probability)


def test_plans_have_no_cell_twice_and_more_seeds_only_add_cells() -> None:
    for plan in (experiment.quick_plan, experiment.full_plan):
        one, three = plan(1).cells, plan(3).cells
        assert len(set(three)) == len(three)
        assert set(one) < set(three)
        assert {cell.seed for cell in three} == {0, 1, 2}
