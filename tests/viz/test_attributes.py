"""Attributes that the data have are shown with the objects, as what they are."""

from __future__ import annotations

from scenegpi.metrics import Protocol
from scenegpi.viz.notebook import notebook_html
from scenegpi.viz.report.exhibit import Shown
from scenegpi.viz.report.gallery import scene as article
from store.scenes import scene

GRAPH = scene(1, attributes=[["old", "<b>"], []])


def test_a_report_lists_them():
    html = article(Shown(GRAPH), 0, Protocol())[0]
    assert "<h4>Attributes</h4>" in html
    assert "man: old, &lt;b&gt;" in html
    scored = article(Shown(GRAPH.replace(attributes=None), GRAPH), 0, Protocol())[0]
    assert "Attributes in the ground truth" in scored
    assert "Attributes" not in article(Shown(scene(1)), 0, Protocol())[0]


def test_a_notebook_has_them_on_hover():
    assert "man (old, &lt;b&gt;)" in notebook_html(GRAPH)
