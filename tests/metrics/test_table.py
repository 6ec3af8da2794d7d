"""Tables: ours beside published figures; different protocols don't mix silently."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from metrics.metrics_cases import random_images
from scenegpi.errors import MetricError
from scenegpi.metrics import Protocol, scene_graph_recall
from scenegpi.metrics.published import PREDICATE_RECALL_AT_5, VG150_OFFICIAL, published
from scenegpi.metrics.table import figure_table

PREDCLS = Protocol(ks=(50, 100), data="random boxes")


@pytest.fixture(scope="module")
def result():
    return scene_graph_recall(*random_images(0, 30), PREDCLS, bootstrap=50)


def test_published_figures():
    rows = {row.system: row for row in published("predcls")}
    assert len(rows) == 15
    assert rows["GPI, linguistic"].figures == {"R@50": 0.651, "R@100": 0.669, "ngR@50": 0.808, "ngR@100": 0.882}
    assert rows["Pixel2Graph 2017"].figures == {"ngR@50": 0.68, "ngR@100": 0.752}
    assert {row.system: row for row in published("sgcls")}["VCTree"].figures == {"R@50": 0.381, "R@100": 0.388}
    assert published("sgdet") == []
    assert all(row.protocol.data == VG150_OFFICIAL for row in rows.values())
    assert len(PREDICATE_RECALL_AT_5) == 19
    # the paper prints its own figure in bold but for these three
    assert {name for name, row in PREDICATE_RECALL_AT_5.items() if max(row) != row[2]} == {"on", "near", "behind"}


def test_another_protocol_is_refused_or_marked(result):
    with pytest.raises(MetricError, match="another protocol"):
        figure_table({"ours": result}, published=published("predcls"))
    with pytest.raises(MetricError, match="another protocol"):
        figure_table({"a": result, "b": replace(result, protocol=replace(PREDCLS, iou=0.3))})
    table = figure_table({"ours": result}, published=published("predcls"), mark=True)
    assert all(row.marks for row in table.rows if row.source != "ours")
    assert not table.rows[-1].marks
    assert any("official test split" in note and "instead of random boxes" in note for note in table.notes)


def test_same_protocol_needs_no_mark(result):
    table = figure_table({"a": result, "b": result}, ("R@50", "ngR@50"))
    assert [row.marks for row in table.rows] == ["", ""]
    assert str(result.protocol) in table.caption


def test_notes_of_a_result_come_along(result):
    table = figure_table({"a": result, "b": replace(result, notes=["2 images were odd."])})
    assert table.rows[1].marks == "a"
    assert "a: 2 images were odd." in table.markdown()


def test_every_form_holds_the_figures_and_the_notes(result):
    table = figure_table({"my_system & co": result}, ("R@50", "ngR@100", "zR@50"), published("predcls"), mark=True)
    shown = f"{100 * result.figures['R@50']:.1f}"
    low, high = result.intervals["R@50"]
    interval = f"{shown} [{100 * low:.1f}, {100 * high:.1f}]"
    markdown = table.markdown()
    assert f"| my_system & co | {interval} |" in markdown
    assert "| GPI, linguistic <sup>a</sup> | 65.1 | 88.2 | – | paper |" in markdown
    latex = table.latex()
    assert r"my\_system \& co & " + interval in latex
    assert r"GPI, linguistic\textsuperscript{a} & 65.1 & 88.2 & -- & paper \\" in latex
    assert r"95\% intervals" in latex
    console = Console(width=80, record=True, file=io.StringIO())
    wide = figure_table({"ours": result}, ("R@50", "R@100", "ngR@50", "ngR@100"), published("predcls"), mark=True)
    console.print(wide.rich())
    text = console.export_text()
    assert "GPI, linguistic (a)" in text
    assert shown in text
    assert "official test split" in " ".join(text.split())
    assert "…" not in text


def test_a_table_needs_a_result():
    with pytest.raises(MetricError, match="no results"):
        figure_table({})
