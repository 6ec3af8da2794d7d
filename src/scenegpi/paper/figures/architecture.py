"""The architecture of a model as a picture: phi, alpha and rho of Theorem 1 with the shapes that flow between them.

The shapes are those of the model's own GPI layer for the boxes of one graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.viz.palette import FAINT, INK, MUTED, PAPER
from scenegpi.viz.picture import picture_file
from scenegpi.viz.sheet import Sheet

if TYPE_CHECKING:
    from scenegpi.models.build import SceneModel

PURPLE, YELLOW, BLUE, GREEN = "#7B5EA7", "#E69F00", "#0072B2", "#009E73"
_WIDTH, _HEIGHT = 13.6, 4.6


class Shapes(NamedTuple):
    """Shapes for n nodes and E ordered pairs: features of both, s, g, labels of both; and the hidden widths of rho."""

    nodes: tuple[int, ...]
    pairs: tuple[int, ...]
    s: tuple[int, ...]
    g: tuple[int, ...]
    node_labels: tuple[int, ...]
    pair_labels: tuple[int, ...]
    hidden: tuple[int, ...]


def shapes(model: SceneModel, graph: SceneGraph) -> Shapes:
    """What flows through the GPI layer of a model; GraphError for a model without one."""
    from scenegpi.models.sgp import SGP

    if not isinstance(model.network, SGP):
        raise GraphError("architecture: this model has no GPI layer")
    layer: Any = model.network.recurrent.layer
    n, pairs = len(graph), len(graph) * (len(graph) - 1)
    d, e, _ = layer.phi.parts
    s, g = layer.phi.out_features, layer.alpha.out_features
    *hidden, labels = (each.out_features for each in layer.rho.layers)
    predicates = layer.edge_rho.layers[-1].out_features
    return Shapes((n, d), (pairs, e), (n, s), (1, g), (n, labels), (pairs, predicates), tuple(hidden))


def draw_architecture(model: SceneModel, graph: SceneGraph, target: str | Path, name: str = "") -> Path:
    """Writes the diagram, PNG or SVG."""
    target = picture_file(target)
    found = shapes(model, graph)
    context = model.config.context
    assert context is not None
    sheet = Sheet(_WIDTH, _HEIGHT)
    title = f"{name}: " if name else ""
    sheet.text((0.2, 0.25), f"{title}one step of the GPI layer, {found.nodes[0]} boxes", 12, INK, bold=True)
    steps = f"{context.steps} step{'s' if context.steps > 1 else ''} of recurrence"
    words = f", word vectors of width {context.words}" if context.words else ""
    about = f"{context.aggregation} aggregation, {steps}{words}; {model.num_parameters():,} weights with the baseline"
    sheet.text((0.2, 0.52), about, 9.5, MUTED)
    top, low = 1.45, 3.25
    _block(sheet, (0.2, top), 1.9, "z_i", [_times(found.nodes), "labels, box, counts"], PURPLE)
    _block(sheet, (0.2, low), 1.9, "z_ij", [_times(found.pairs), "relation, reverse, geometry"], PURPLE)
    kind = {"sum": "sum", "mean": "mean", "max": "maximum"}.get(context.aggregation, "attention")
    _block(sheet, (2.75, low), 1.75, "phi(z_i, z_ij, z_j)", ["one layer, ReLU", _wide(found.s)], YELLOW)
    _block(sheet, (5.05, top), 1.55, "s_i", [_times(found.s), f"{kind} over j"], GREEN)
    _block(sheet, (7.15, top), 1.6, "alpha(z_i, s_i)", ["one layer, ReLU", _wide(found.g)], BLUE)
    _block(sheet, (7.15, low), 1.6, "g", [_times(found.g), f"{kind} over i"], GREEN)
    reads = "z, g" if context.strict else "z, s, g"
    layers = "layers of " + ", ".join(map(str, found.hidden))
    _block(sheet, (9.4, top), 1.7, f"rho({reads})", [layers, "forget gate"], "#D55E00")
    _block(sheet, (9.4, low), 1.7, f"rho'({reads})", [layers, "forget gate"], "#D55E00")
    _block(sheet, (11.7, top), 1.7, "y_i", [_times(found.node_labels), "labels"], PURPLE)
    _block(sheet, (11.7, low), 1.7, "y_ij", [_times(found.pair_labels), "predicates"], PURPLE)
    for start, end in (
        ((2.1, low), (2.75, low)),
        ((2.1, top + 0.15), (2.75, low - 0.2)),
        ((4.5, low - 0.1), (5.05, top + 0.2)),
        ((6.6, top), (7.15, top)),
        ((7.95, top + 0.42), (7.95, low - 0.42)),
        ((8.75, low - 0.12), (9.4, top + 0.2)),
        ((8.75, low), (9.4, low)),
        ((11.1, top), (11.7, top)),
        ((11.1, low), (11.7, low)),
    ):
        sheet.arrow(start, end, MUTED, 1.3)
    for near, far, into in ((top - 0.42, top - 0.6, (7.95, 10.25)), (low + 0.42, low + 0.6, (10.25,))):
        sheet.line((1.15, near), (1.15, far), MUTED, 1.3)
        sheet.line((1.15, far), (10.25, far), MUTED, 1.3)
        for x in into:
            sheet.arrow((x, far), (x, near), MUTED, 1.3)
    sheet.line((5.82, top - 0.42), (5.82, top - 0.6), MUTED, 1.3)
    if context.steps > 1:
        sheet.text((12.55, (top + low) / 2), "again, as z", 9, MUTED, anchor="middle")
    sheet.save(target)
    return target


def _block(sheet: Sheet, at: tuple[float, float], width: float, title: str, lines: list[str], colour: str) -> None:
    """A box whose left side is in the middle of its height at `at`."""
    left, middle = at
    sheet.rect((left, middle - 0.42, left + width, middle + 0.42), PAPER, colour, 1.8, radius=0.07)
    sheet.rect((left, middle - 0.42, left + width, middle - 0.12), colour, colour, 1.0, radius=0.07, alpha=0.16)
    sheet.text((left + width / 2, middle - 0.27), title, 10, INK, bold=True, anchor="middle")
    for k, line in enumerate(lines):
        sheet.text((left + width / 2, middle + 0.03 + 0.22 * k), line, 8.5, MUTED if k else INK, anchor="middle")
    sheet.line((left, middle - 0.12), (left + width, middle - 0.12), FAINT, 0.6)


def _times(shape: tuple[int, ...]) -> str:
    return " × ".join(f"{each:,}" for each in shape)


def _wide(shape: tuple[int, ...]) -> str:
    return f"width {shape[-1]:,}"
