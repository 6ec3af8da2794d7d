"""Rendered scenes: the same for a seed, boxes tight about what is painted, relations that the boxes bear out."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import numpy as np
import pytest

from scenegpi.paper.rendered import SceneOptions, render_scene, rendered_vocabulary
from scenegpi.paper.rendered.grammar import imagine
from scenegpi.paper.rendered.paint import paint
from scenegpi.paper.rendered.scene import visible_boxes

SCENES = 60


@cache
def scenes():
    return [render_scene(7, k) for k in range(SCENES)]


def test_a_seed_and_an_index_are_all_there_is():
    image, graph = render_scene(3, 5)
    again, same = render_scene(3, 5)
    assert np.array_equal(np.asarray(image), np.asarray(again))
    assert graph == same
    other, _ = render_scene(4, 5)
    assert image.size != other.size or not np.array_equal(np.asarray(image), np.asarray(other))


def test_scenes_do_not_touch_the_global_dice():
    import random

    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    render_scene(0, 0)
    assert random.getstate() == before[0]
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


def test_pictures_and_graphs_agree():
    for image, graph in scenes():
        assert image.mode == "RGB"
        assert image.size == (graph.width, graph.height)
        assert (graph.boxes[:, :2] >= 0).all()
        assert (graph.boxes[:, 2:] <= [graph.width, graph.height]).all()
        assert (graph.boxes[:, 2:] - graph.boxes[:, :2] >= 9).all()
        assert len(graph) >= 3
        assert len(graph.relations) >= 1
        assert (graph.relations[:, 0] != graph.relations[:, 1]).all()
        assert len({tuple(row) for row in graph.relations.tolist()}) == len(graph.relations)


@pytest.mark.parametrize("seed", range(4))
def test_boxes_are_tight_about_the_pixels_that_vanish_with_the_thing(seed):
    """Paint the scene without one thing (but with its shadow): all pixels that change visibly lie in its box."""
    rng = Random(seed)
    stage = imagine(rng, SceneOptions(damage=0.0))
    state = rng.getstate()
    painted = paint(stage, rng)
    boxes = visible_boxes(stage, painted)
    whole = np.asarray(painted.image).astype(int)
    for number, box in boxes.items():
        thing = stage.things[number]
        drawing, label = thing.drawing, thing.label
        parts = [t for t in stage.things if t.part_of == number]
        kept = [(t, t.drawing) for t in (thing, *parts)]
        for t, _ in kept:
            t.drawing = type(drawing)(t.drawing.extent, lambda brush: None, t.drawing.points)
        rng.setstate(state)
        without = np.asarray(paint(stage, rng).image).astype(int)
        for t, d in kept:
            t.drawing = d
        changed = np.abs(whole - without).max(axis=2)
        assert changed.any(), label
        rows, columns = np.nonzero(changed > 110)  # an edge pixel that is less than 96 / 255 covered changes less
        if len(rows):
            assert box[0] <= columns.min(), label
            assert columns.max() < box[2], label
            assert box[1] <= rows.min(), label
            assert rows.max() < box[3], label
        rows, columns = np.nonzero(changed)  # and the box holds nothing but what it must
        assert columns.min() <= box[0], label
        assert columns.max() >= box[2] - 1, label
        assert rows.min() <= box[1], label
        assert rows.max() >= box[3] - 1, label


def test_relations_are_borne_out_by_the_boxes():
    seen = Counter()
    for _, graph in scenes():
        for triplet in graph.triplets():
            s, o = graph.boxes[triplet.subject_index], graph.boxes[triplet.object_index]
            wide, high = min(s[2], o[2]) - max(s[0], o[0]), min(s[3], o[3]) - max(s[1], o[1])
            height = (s[1] + s[3]) / 2 - (o[1] + o[3]) / 2  # below 0: the subject is higher up
            word = triplet.predicate
            seen[word] += 1
            if word in ("behind", "in front of", "in", "riding", "sitting on", "has"):
                assert wide > 0, triplet
                assert high > 0, triplet
            if word in ("riding", "sitting on", "above"):
                assert height < 0, triplet
            if word == "under":
                assert height > 0, triplet
            if word == "on":
                assert wide > 0, triplet
                assert s[1] < o[3], triplet
            if word == "wearing":
                assert triplet.object == "hat", triplet
                assert height > 0, triplet
                assert wide > 0, triplet
            if word == "near":
                gap = max(-wide, -high, 0)
                assert gap < 1.0 * max(np.ptp(s[::2]) + np.ptp(s[1::2]), np.ptp(o[::2]) + np.ptp(o[1::2])), triplet
    assert set(seen) == set(rendered_vocabulary().predicates)


def test_counts_are_like_visual_genomes():
    boxes = np.mean([len(graph) for _, graph in scenes()])
    relations = np.mean([len(graph.relations) for _, graph in scenes()])
    assert 7 <= boxes <= 12
    assert 5 <= relations <= 9


def test_vocabulary_is_what_folders_and_models_refer_to():
    vocabulary = rendered_vocabulary()
    assert (len(vocabulary.objects), len(vocabulary.predicates)) == (17, 11)
    assert vocabulary.reference == "rendered-ab5df30acd1d"


def test_labels_do_not_tell_the_predicate():
    """Many annotated pairs have labels that were also seen with another predicate."""
    words: dict[tuple[str, str], Counter] = {}
    for _, graph in scenes():
        for t in graph.triplets():
            words.setdefault((t.subject, t.object), Counter())[t.predicate] += 1
    total = sum(sum(count.values()) for count in words.values())
    best = sum(max(count.values()) for count in words.values())
    assert best / total < 0.9


@pytest.mark.parametrize(("field", "value"), [("lookalike", 1.5), ("damage", -0.1)])
def test_options_outside_their_range_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        SceneOptions(**{field: value})
