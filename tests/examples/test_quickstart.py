"""The notebook runs from top to bottom with what ships, and says what its text promises."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest

from conftest import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOK = ROOT / "examples" / "quickstart.ipynb"


@pytest.fixture(scope="module")
def notebook() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def executed(notebook, tmp_path_factory) -> Any:
    """Run by this Python in an empty folder; a cell that fails raises."""
    folder = tmp_path_factory.mktemp("notebook")
    done = deepcopy(notebook)
    nbclient.NotebookClient(
        done, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return done


def printed(executed: Any, word: str) -> str:
    """What the cell with this word in its code prints."""
    (cell,) = (cell for cell in executed.cells if cell.cell_type == "code" and word in cell.source)
    return "".join(out.text for out in cell.outputs if out.output_type == "stream" and out.name == "stdout")


def test_it_is_stored_without_outputs(notebook):
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


def test_its_links_lead_somewhere(notebook):
    links = [link for cell in notebook.cells for link in re.findall(r"\]\(([^)#]+)\)", cell.source)]
    assert links
    for link in links:
        assert (NOTEBOOK.parent / link).is_file(), link


def test_no_cell_complains(executed):
    """Nothing on stderr: a warning in a first example is a fault."""
    for cell in executed.cells:
        for out in cell.get("outputs", ()):
            assert out.get("name") != "stderr", out.text


def test_the_graph_shows_itself(executed):
    (cell,) = (cell for cell in executed.cells if cell.source == "graph")
    (out,) = cell.outputs
    assert "image/png" in out.data


def test_what_it_prints(executed):
    assert "man - riding - horse" in printed(executed, "from scenegpi import predict\n")
    assert "R@20" in printed(executed, "scene_graph_recall")


def test_it_keeps_the_promise_of_its_text(executed):
    layer, lstm = (float(number) for number in re.findall(r": ([\d.e+-]+)", printed(executed, "permutation_gap")))
    assert layer < 1e-5 < 0.01 < lstm
    right, common = (float(number) for number in re.findall(r": ([\d.]+)%", printed(executed, "optimiser.step()")))
    assert right > 80 > common
