"""Pictures: labels clear of each other, deterministic files, photos of any kind, crowds and nothing at all."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenegpi import SceneGraph
from scenegpi.data import DataError, open_dataset, sample_path
from scenegpi.viz.arrange import arrange, border, separate, stress_layout, tangle
from scenegpi.viz.characters import canvas, render
from scenegpi.viz.name_tags import leaders, place_tags
from scenegpi.viz.palette import COLOURS, deal_colours, luminance, text_on
from scenegpi.viz.text import numbered
from scenegpi.vocabulary import spoken
from strategies import VOCABULARY, graphs


@settings(max_examples=30)
@given(st.integers(1, 30), st.integers(0, 1000))
def test_rectangles_end_up_clear_of_each_other(n, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(0.3, 1.2, (n, 2)) * [1, 0.3]
    at = separate(rng.uniform(0, 10, (n, 2)), sizes, (0, 0, 14, 10))
    gap = np.abs(at[:, None] - at[None, :])
    need = (sizes[:, None] + sizes[None, :]) / 2
    overlap = np.prod(np.maximum(need - gap, 0), axis=2)
    np.fill_diagonal(overlap, 0)
    assert overlap.max() < 0.05 * np.prod(sizes, axis=1).mean()
    assert (at - sizes / 2 >= -1e-9).all()
    assert (at + sizes / 2 <= [14 + 1e-9, 10 + 1e-9]).all()


def test_linked_nodes_lie_closer_than_others():
    links = [(0, 1), (1, 2), (2, 3), (4, 5)]
    at = stress_layout(np.random.default_rng(0).uniform(size=(6, 2)), links)
    distance = np.linalg.norm(at[:, None] - at[None, :], axis=2)
    linked = [distance[a, b] for a, b in links]
    assert max(linked) < min(distance[0, 2], distance[0, 3], distance[0, 4], distance[3, 5])


def test_tags_stay_in_the_picture_and_avoid_each_other():
    boxes = np.array([[0, 0, 50, 50]] * 3 + [[90, 90, 100, 100.0]])
    sizes = np.full((4, 2), [20, 5.0])
    corners = place_tags(boxes, sizes, 100, 100)
    assert (corners >= 0).all()
    assert (corners + sizes <= 100).all()
    assert len({tuple(c) for c in corners.tolist()}) == 4


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 1000))
def test_names_do_not_cover_each_other(n, seed):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, [560, 400], (n, 2))
    boxes = np.concatenate([low, low + rng.uniform(10, 80, (n, 2))], axis=1)
    sizes = np.column_stack([rng.uniform(25, 60, n), np.full(n, 11.0)])
    corners = place_tags(boxes, sizes, 640, 480)
    meet = np.maximum(corners[:, None], corners[None]), np.minimum((corners + sizes)[:, None], (corners + sizes)[None])
    shared = np.prod(np.maximum(meet[1] - meet[0], 0), axis=2)
    np.fill_diagonal(shared, 0)
    assert shared.max() <= 0.02 * np.prod(sizes, axis=1).max()
    assert (corners >= 0).all()
    assert (corners + sizes <= [640, 480]).all()
    away = {k for k, _, _ in leaders(boxes, corners, sizes)}
    for k in set(range(n)) - away:  # what has no line touches its box, nearly
        gap = np.maximum(boxes[k, :2] - corners[k] - sizes[k], corners[k] - boxes[k, 2:])
        assert gap.max() <= 0.35 * 11


def test_a_name_keeps_off_a_small_box():
    boxes = np.array([[100.0, 100, 300, 300], [105, 85, 145, 99]])
    corners = place_tags(boxes, np.full((2, 2), [40.0, 14]), 400, 400)
    assert corners[0].tolist() != [100, 86]


def test_neighbours_have_different_colours():
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 300, (6, 2))
    boxes = np.concatenate([low, low + 50], axis=1)
    assert len(set(deal_colours(boxes))) == 6
    twins = np.array([[0.0, 0, 50, 50], [1, 1, 51, 51], [400, 400, 420, 420]])
    assert deal_colours(twins)[0] != deal_colours(twins)[1]
    assert deal_colours(np.zeros((0, 4))) == []


@pytest.mark.parametrize("colour", COLOURS)
def test_text_is_readable_on_every_colour(colour):
    light, dark = sorted((luminance(colour), luminance(text_on(colour))), reverse=True)
    assert (light + 0.05) / (dark + 0.05) > 4.5


def test_a_tangle_is_counted():
    at = np.array([[0.0, 0], [4, 4], [0, 4], [4, 0], [2, 2.0]])
    small = np.full((5, 2), 0.1)
    assert tangle(at[:4], small[:4], [(0, 1), (2, 3)]) == 1
    assert tangle(at[:4], small[:4], [(0, 2), (1, 3)]) == 0
    assert tangle(at, small, [(0, 1)]) == 1.5  # runs through node 4
    assert tangle(at, small, [(0, 4), (4, 1)]) == 0


@settings(max_examples=20)
@given(st.integers(0, 60), st.integers(0, 40), st.integers(0, 100))
def test_arranged_nodes_stay_in_the_panel_and_apart(n, r, seed):
    rng = np.random.default_rng(seed)
    links = {}
    if n > 1:
        for s in rng.integers(0, n, r).tolist():
            links[s, (s + int(rng.integers(1, n))) % n] = ["on"]
    made = arrange(["thing"] * n, rng.uniform(size=(n, 2)), links, (7.0, 6.0))
    assert len(made.texts) == len(made.shown) + len(links)
    assert len(made.shown) + made.left_out == n
    assert (made.at - made.sizes / 2 >= -1e-6).all()
    assert (made.at + made.sizes / 2 <= [7 + 1e-6, 6 + 1e-6]).all()
    for k in range(len(links)):
        *_, tip = made.arrow(k)
        object_ = made.place[made.links[k][1]]
        assert (np.abs(tip - made.at[object_]) <= made.sizes[object_] / 2 + 1e-9).all()


def test_a_line_ends_at_the_border():
    assert border(np.array([10.0, 0]), np.zeros(2), np.array([4.0, 2])).tolist() == [2, 0]
    assert border(np.zeros(2), np.zeros(2), np.array([4.0, 2])).tolist() == [0, 0]


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_files_are_the_same_each_time(tmp_path, suffix):
    graph = open_dataset(sample_path())[0]
    a, b = (graph.draw(tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
    assert a == b


def test_the_picture_names_every_object_twice_and_every_relation(tmp_path):
    graph = open_dataset(sample_path())[0]
    tree = ElementTree.parse(graph.draw(tmp_path / "x.svg"))
    texts = Counter(element.text for element in tree.iter("{http://www.w3.org/2000/svg}text"))
    texts -= Counter({"sample-1.jpg": 1, "13 boxes, 13 relations": 1})
    assert texts == Counter([*map(spoken, graph.names)] * 2) + Counter(t.predicate for t in graph.triplets())


def test_scores_stand_beside_relations_and_guesses_look_like_guesses(tmp_path):
    boxes = [[0, 0, 90, 90], [10, 10, 50, 80], [60, 20, 95, 95], [2, 60, 30, 90]]
    relations, scores = [(0, 1, 0), (0, 2, 0)], [0.5, 0.004]
    graph = SceneGraph(boxes, [0, 1, 0, 1], VOCABULARY, relations, relation_scores=scores, width=100, height=100)
    text = graph.draw(tmp_path / "x.svg").read_text()
    predicate = VOCABULARY.predicates[0]
    assert f">{predicate} 0.50<" in text
    assert f">{predicate} &lt;0.01<" in text

    def dashed(graph):
        return graph.draw(tmp_path / "y.svg").read_text().count("stroke-dasharray")

    sure = graph.replace(relation_scores=[0.5, 0.4])
    assert dashed(graph) - dashed(sure) == 1  # the guess; the object without a relation is dashed in both
    assert dashed(sure) == 1


def test_few_nodes_take_little_room(tmp_path):
    from PIL import Image

    few = SceneGraph([[0, 0, 90, 90], [10, 10, 50, 80]], [0, 1], VOCABULARY, [(0, 1, 0)], width=100, height=100)
    many = SceneGraph(
        np.tile([0.0, 0, 90, 90], (9, 1)), [0] * 9, VOCABULARY, [(0, k, 0) for k in range(1, 9)], width=100, height=100
    )
    narrow, wide = (Image.open(each.draw(tmp_path / "x.png")).width for each in (few, many))
    assert narrow < 0.75 * wide
    assert (narrow - 5.5 * 130) / narrow < 0.45  # the photo has more than half


def test_boxes_are_drawn_where_they_are(tmp_path):
    from PIL import Image

    graph = SceneGraph([[100, 50, 300, 250]], [0], VOCABULARY, width=400, height=300)
    shown = np.asarray(Image.open(graph.draw(tmp_path / "x.png")).convert("RGB"), dtype=int)
    blue = np.argwhere(np.abs(shown[:, : 7 * 130] - [0x00, 0x72, 0xB2]).sum(axis=2) < 10)
    left, top, scale = 0.12 * 130, 0.42 * 130, 7.0 * 130 / 400
    high, low = blue.max(axis=0), blue.min(axis=0)
    assert high.tolist() == pytest.approx([top + 250 * scale, left + 300 * scale], abs=4)
    assert low[1] == pytest.approx(left + 100 * scale, abs=4)  # at the top is the name


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "CMYK", "I;16", "P"])
def test_photos_of_any_mode(tmp_path, mode):
    from PIL import Image

    suffix = "jpg" if mode == "CMYK" else "png"
    Image.new(mode, (64, 48)).save(tmp_path / f"photo.{suffix}")
    graph = SceneGraph([[0, 0, 32, 24]], [0], VOCABULARY, width=64, height=48)
    drawn = Image.open(graph.draw(tmp_path / "x.png", tmp_path / f"photo.{suffix}")).convert("L")
    grey = drawn.getpixel((int(0.12 * 130 + 0.75 * 7 * 130), 400))  # right of the box
    assert grey == (255 if mode in ("CMYK", "RGBA") else 0)  # no ink, or transparent: white


def test_a_broken_photo_is_one_line_and_leaves_nothing(tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0 not a photo")
    with pytest.raises(DataError, match=r"photo\.jpg: cannot be read as an image"):
        SceneGraph([], [], VOCABULARY).draw(tmp_path / "x.png", tmp_path / "photo.jpg")
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("n", [0, 1, 40, 466])
def test_any_number_of_boxes(tmp_path, n):
    rng = np.random.default_rng(n)
    low = rng.uniform(0, 300, (n, 2))
    relations = np.column_stack([rng.integers(0, n, (n, 2)), rng.integers(0, 3, n)]) if n else []
    boxes = np.concatenate([low, low + rng.uniform(0, 100, (n, 2))], axis=1)
    graph = SceneGraph(boxes, rng.integers(0, 4, n), VOCABULARY, relations, width=400, height=300)
    assert graph.draw(tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    tree = ElementTree.parse(graph.draw(tmp_path / "x.svg"))
    texts = {element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")}
    assert texts >= {*numbered(graph.names), "1 box, 1 relation" if n == 1 else f"{n} boxes, {n} relations"}


@settings(max_examples=50)
@given(graphs(sized=False))
def test_the_terminal_shows_every_object(graph):
    from rich.console import Console

    console = Console(width=100, file=None, record=True, quiet=True)
    console.print(render(graph))
    if len(graph):
        rows = canvas(graph, 60).plain.splitlines()
        assert all(len(row) == 60 for row in rows)
        text = "\n".join(rows)
        assert all(name in text for name in numbered(graph.names))
