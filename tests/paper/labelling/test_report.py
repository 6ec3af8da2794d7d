"""Summaries and the figure, and that the published numbers are what the page says."""

import json
from pathlib import Path

import pytest

from scenegpi.errors import DataError
from scenegpi.paper.figures.curves import draw_labelling, labelling_figure
from scenegpi.paper.labelling.report import Point, at_sizes, curve, read_results, summary_rows

DOCS = Path(__file__).parents[3] / "docs" / "lab"


def cell(model: str, samples: int, seed: int, accuracy: float, nodes: int = 10) -> dict[str, object]:
    return {
        "model": model,
        "nodes": nodes,
        "samples": samples,
        "seed": seed,
        "accuracy": accuracy,
        "cpu_seconds": 2.0,
        "order_gap": 0.0,
        "other_sizes": [{"nodes": 5, "same_degree": accuracy, "same_probability": accuracy / 2}],
        "checks": [[50, 1.0, 1.0, 0.5, 1.0], [100, 2.0, 2.0, accuracy, 0.5]],
    }


CELLS = [
    cell("gpi", 100, 0, 0.9),
    cell("gpi", 100, 1, 1.0),
    cell("gpi", 50, 0, 0.8),
    cell("fc", 50, 0, 0.4),
    cell("gpi", 50, 0, 0.1, nodes=30),
]


def test_curve_is_mean_and_range_over_seeds() -> None:
    assert curve(CELLS, "gpi", 10) == [Point(50, 0.8, 0.8, 0.8, 1), Point(100, pytest.approx(0.95), 0.9, 1.0, 2)]
    assert curve(CELLS, "lstm", 10) == []
    assert at_sizes(CELLS, "gpi", 100, "same_probability") == [Point(5, pytest.approx(0.475), 0.45, 0.5, 2)]


def test_rows_leave_gaps_where_nothing_was_run() -> None:
    rows = summary_rows(CELLS, 10, lambda point: "" if point is None else f"{point.mean:.2f}")
    assert rows == [["50", "0.80", "", "", "0.40"], ["100", "0.95", "", "", ""]]


def test_figure_shows_every_model_that_was_run(tmp_path: Path) -> None:
    results = {"cells": CELLS, "strict_ceiling": 0.8}
    whole, zoomed, seconds, sizes = labelling_figure(results).axes
    labels = [line.get_label() for line in whole.get_lines()]
    assert sum("GPI" in str(label) for label in labels) == 1
    assert "fully connected" in labels
    (gpi,) = [line for line in whole.get_lines() if "GPI" in str(line.get_label())]
    assert list(gpi.get_ydata()) == pytest.approx([80, 95])
    assert whole.get_ylim()[0] < 40 < 90 < zoomed.get_ylim()[0]
    assert seconds.get_xscale() == whole.get_xscale() == "log"
    assert sizes.get_xscale() == "linear"
    paths = draw_labelling(results, tmp_path)
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in draw_labelling(results, tmp_path)] == first
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.parametrize("text", ["[]", '{"cells": []}', '{"cells": [1], "models": {}, "strict_ceiling": 1}'])
def test_other_json_is_not_a_results_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(DataError, match="not a results file"):
        read_results(tmp_path / "other.json")


def test_published_results_reach_what_the_page_claims() -> None:
    results = read_results(DOCS / "labelling-results.json")
    cells = results["cells"]
    at_1000 = {point.x: point for point in curve(cells, "gpi", 10)}[1000]
    assert at_1000.low >= 0.995
    assert max(c["order_gap"] for c in cells if c["model"].startswith("gpi")) < 1e-5
    assert min(c["order_gap"] for c in cells if c["model"] in ("lstm", "fc")) > 1e-3
    assert all(
        c["accuracy"] <= results["strict_ceiling"] for c in cells if (c["model"], c["nodes"]) == ("gpi-strict", 10)
    )
    parameters = [model["parameters"] for model in results["models"].values()]
    assert max(parameters) / min(parameters) < 1.06
    page = (DOCS / "labelling.md").read_text()
    for row in summary_rows(cells, 10, lambda point: "" if point is None else f"{100 * point.mean:.1f}"):
        assert f"| {' | '.join(row)} |" in page
    assert json.dumps(results)
