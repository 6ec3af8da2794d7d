"""A picture of one scene graph: the photo (or an empty canvas) with its boxes, and the graph beside it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.errors import DataError, printable
from scenegpi.data.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.viz.layout import place_tags, separate, stress_layout

# Okabe and Ito's colours, which the colour-blind tell apart; yellow is left out (too pale on white).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
ENTITY, RELATION, INK = "#DCEAF5", "#FBE3D3", "#1A1A1A"
POINT = 1 / 72
CROWD = 40  # with more boxes than this, only those in a relation are nodes of the graph


def draw(graph: SceneGraph, target: str | Path, photo: str | Path | None = None, top: int = 20) -> Path:
    """Writes the picture (PNG or SVG, by the suffix); `top` is how many relations the graph shows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    target = Path(target)
    if target.suffix.lower() not in (".png", ".svg"):
        raise DataError(target, "a picture is a .png or .svg file")
    pixels = _load(photo) if photo is not None else None
    width, height = _canvas(graph, pixels)
    boxes = _scaled(graph, width, height, pixels)
    panel = (7.0, float(np.clip(7.0 * height / width, 3.5, 9.0)))
    figure = Figure(figsize=(2 * panel[0] + 0.3, panel[1] + 0.45), facecolor="white")
    with matplotlib.rc_context({"font.family": "DejaVu Sans", "svg.hashsalt": "scenegpi"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # names in scripts that the font lacks show as boxes
        _draw_boxes(figure, graph, boxes, pixels, (width, height), panel)
        _draw_graph(figure, graph, boxes, (width, height), panel, top)
        with whole_file(target) as part:
            kind = target.suffix.lower()[1:]
            metadata: Any = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(part, format=kind, dpi=110, metadata=metadata)
    return target


def _plain(text: str) -> str:
    """The text as it stands: no control characters, and no $ that would start a formula."""
    return printable(text).replace("$", r"\$")


def _load(photo: str | Path) -> NDArray[np.uint8]:
    from PIL import Image, ImageOps

    try:
        with Image.open(photo) as image:
            return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(photo, f"not a readable photo ({error})") from None


def _canvas(graph: SceneGraph, pixels: NDArray[np.uint8] | None) -> tuple[float, float]:
    """Width and height of what the boxes are drawn on."""
    if pixels is not None:
        return float(pixels.shape[1]), float(pixels.shape[0])
    reach = graph.boxes[:, 2:].max(axis=0) if len(graph) else np.array([4.0, 3.0])
    return float(graph.width or max(reach[0], 1)), float(graph.height or max(reach[1], 1))


def _scaled(graph: SceneGraph, width: float, height: float, pixels: NDArray[np.uint8] | None) -> NDArray[np.float64]:
    """Boxes on the canvas: a photo may be larger or smaller than the size its annotations refer to."""
    if pixels is None or graph.width is None or graph.height is None:
        return graph.boxes
    scale = np.array([width / graph.width, height / graph.height])
    return graph.boxes * np.tile(scale, 2)


def _text_sizes(texts: list[str], size: float) -> NDArray[np.float64]:
    """(N, 2) width and height in inches of texts set at `size` points, with a little air around them."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(family="DejaVu Sans")
    widths = [TextPath((0, 0), text or " ", size=size, prop=font).get_extents().width for text in texts]
    return np.array([(w * POINT + 0.12, size * POINT * 1.65) for w in widths], dtype=np.float64).reshape(-1, 2)


def _draw_boxes(
    figure: Any,
    graph: SceneGraph,
    boxes: NDArray[np.float64],
    pixels: NDArray[np.uint8] | None,
    canvas: tuple[float, float],
    panel: tuple[float, float],
) -> None:
    width, height = canvas
    inches = (2 * panel[0] + 0.3, panel[1] + 0.45)
    axes = figure.add_axes((0.05 / inches[0], 0.05 / inches[1], panel[0] / inches[0], panel[1] / inches[1]))
    if pixels is not None:
        axes.imshow(pixels, extent=(0, width, height, 0), aspect="auto")
    else:
        axes.set_facecolor("#F4F4F1")
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color("#BBBBBB")
    size = 10.5 if len(graph) <= 12 else 8.5 if len(graph) <= 25 else 7
    names = [_plain(f"{name} {i}") for i, name in enumerate(graph.names)]
    unit = np.array([width / panel[0], height / panel[1]])
    sizes = _text_sizes(names, size) * unit
    order = np.argsort(-np.prod(boxes[:, 2:] - boxes[:, :2], axis=1), kind="stable")
    corners = np.empty((len(boxes), 2))
    corners[order] = place_tags(boxes[order], sizes[order], width, height)
    from matplotlib.patches import Rectangle

    for i in order.tolist():
        x1, y1, x2, y2 = boxes[i].tolist()
        colour = COLOURS[i % len(COLOURS)]
        if pixels is None:
            axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, facecolor=colour, alpha=0.08, linewidth=0))
        axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor="white", linewidth=3.2))
        axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=colour, linewidth=1.8))
    for i in order.tolist():
        (x, y), (w, h) = corners[i].tolist(), sizes[i].tolist()
        axes.add_patch(Rectangle((x, y), w, h, facecolor=COLOURS[i % len(COLOURS)], linewidth=0, zorder=4))
        axes.text(x + w / 2, y + h / 2, names[i], color="white", fontsize=size, ha="center", va="center", zorder=5)
    image = _plain(str(graph.file or graph.image_id or "scene"))
    title = f"{image}   {len(graph)} boxes, {len(graph.relations)} relations"
    figure.text(0.05 / inches[0], 1 - 0.3 / inches[1], title, fontsize=11, color=INK)


def _draw_graph(
    figure: Any,
    graph: SceneGraph,
    boxes: NDArray[np.float64],
    canvas: tuple[float, float],
    panel: tuple[float, float],
    top: int,
) -> None:
    from matplotlib.patches import FancyBboxPatch

    inches = (2 * panel[0] + 0.3, panel[1] + 0.45)
    left = panel[0] + 0.2
    axes = figure.add_axes((left / inches[0], 0.05 / inches[1], panel[0] / inches[0], panel[1] / inches[1]))
    axes.set_xlim(0, panel[0])
    axes.set_ylim(panel[1], 0)
    axes.axis("off")
    links = _links(graph, top)
    if not len(graph):
        axes.text(panel[0] / 2, panel[1] / 2, "no objects", ha="center", va="center", color=INK)
        return
    size = 10.0 if len(graph) + len(links) <= 24 else 8.0 if len(graph) + len(links) <= 45 else 6.5
    linked = {end for pair in links for end in pair}
    shown = list(range(len(graph))) if len(graph) <= CROWD else sorted(linked)
    place = {box: k for k, box in enumerate(shown)}
    entities = [_plain(f"{graph.names[i]} {i}") for i in shown]
    texts = entities + [_plain(" / ".join(words)) for words in links.values()]
    sizes = _text_sizes(texts, size) + 0.04
    home = (boxes[shown, :2] + boxes[shown, 2:]) / 2 / np.array(canvas) * np.array(panel)
    middles = [(home[place[s]] + home[place[o]]) / 2 for s, o in links]
    start = np.concatenate([home, np.array(middles).reshape(-1, 2)])
    edges = [(place[end], len(entities) + k) for k, pair in enumerate(links) for end in pair]
    start = _fit(stress_layout(start, edges), np.array(panel))
    room = min(1.0, 0.35 * np.prod(panel) / np.prod(sizes, axis=1).sum())  # air between nodes, less in a crowd
    at = separate(start, sizes + np.array([0.25, 0.3]) * room, (0, 0, *panel))
    for k, (subject, object_) in enumerate(links):
        middle, s, o = at[len(entities) + k], place[subject], place[object_]
        line = {"color": "#8A8A8A", "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", xy=middle, xytext=at[s], arrowprops={"arrowstyle": "-", **line}, zorder=1)
        tip = _border(middle, at[o], sizes[o])
        axes.annotate("", xy=tip, xytext=middle, arrowprops={"arrowstyle": "-|>", **line}, zorder=1)
    for i, text in enumerate(texts):
        entity = i < len(entities)
        (x, y), (w, h) = at[i], sizes[i]
        edge = COLOURS[shown[i] % len(COLOURS)] if entity else "#B0571E"
        faded = entity and shown[i] not in linked
        patch = FancyBboxPatch(
            (x - w / 2, y - h / 2),
            w,
            h,
            boxstyle=f"round,pad=0,rounding_size={0.08 if entity else 0.13}",
            facecolor=ENTITY if entity else RELATION,
            edgecolor=edge,
            linewidth=1.5 if entity else 0.8,
            alpha=0.45 if faded else 1.0,
            zorder=3,
        )
        axes.add_patch(patch)
        shade = 0.55 if faded else 1.0
        axes.text(x, y, text, fontsize=size, color=INK, ha="center", va="center", zorder=4, alpha=shade)
    if len(shown) < len(graph):
        note = f"{len(graph) - len(shown)} objects without a relation shown are left out"
        axes.text(panel[0], panel[1], note, fontsize=8, color="#666666", ha="right", va="bottom")


def _links(graph: SceneGraph, top: int) -> dict[tuple[int, int], list[str]]:
    """Ordered pair -> its predicates, of the best `top` distinct relations."""
    distinct = dict.fromkeys((t.subject_index, t.object_index, t.predicate) for t in graph.triplets())
    links: dict[tuple[int, int], list[str]] = {}
    for s, o, predicate in list(distinct)[:top]:
        links.setdefault((s, o), []).append(predicate)
    return links


def _border(start: NDArray[np.float64], end: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the line from `start` to the centre `end` of a rectangle meets its border."""
    way = start - end
    reach = np.abs(way) / np.maximum(size / 2, 1e-9)
    return end + way / max(float(reach.max()), 1.0)


def _fit(points: NDArray[np.float64], panel: NDArray[np.float64]) -> NDArray[np.float64]:
    """The points centred and scaled to the panel."""
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    reach = np.maximum(np.ptp(points, axis=0), 1e-6)
    return np.asarray(panel / 2 + (points - middle) * np.minimum(panel * [0.86, 0.9] / reach, 2.0))
