"""Relations of another annotation in the counts that a model reads."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
import torch

from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.models import build_model
from scenegpi.models.build import prepare_model
from scenegpi.models.config import ModelConfig
from scenegpi.training.config import MoreRelations
from scenegpi.training.more_relations import count_more, known_rows, labels_of, with_rows
from scenegpi.vocabulary import Vocabulary

OURS = Vocabulary(("chair", "man", "person", "surfboard"), ("holding", "on", "riding"))
THEIRS = Vocabulary(("couch", "person", "surfboard", "zeppelin"), ("kick", "riding"))
BOXES = [[0, 0, 9, 9], [5, 5, 20, 20], [1, 1, 8, 8]]


def test_names_speak_of_sets_of_labels():
    assert labels_of("person", OURS.objects) == (2, 1)
    assert labels_of("couch", OURS.objects) == (0,)  # what stands for it
    assert labels_of("zeppelin", OURS.objects) == ()


def test_rows_with_words_that_the_model_lacks_are_left_out():
    relations = [[0, 1, 1], [0, 1, 1], [0, 1, 0], [0, 2, 1]]  # riding twice, kick, and riding a zeppelin
    graph = SceneGraph(BOXES, [1, 2, 3], THEIRS, relations=relations)
    assert known_rows([graph], THEIRS, OURS) == Counter({((2, 1), (3,), 2): 1})


def test_a_row_is_shared_out_as_relations_were_counted():
    counts = torch.zeros(4, 4, 4, dtype=torch.int32)
    counts[1, 3, 2] = 29  # man on surfboard
    counts[2, 3, 2] = 9
    counts[2, 3, 0] = 1000  # pairs without a relation say nothing
    made = with_rows(counts, Counter({((2, 1), (3,), 2): 40}), 2.0)
    assert made.dtype == counts.dtype
    assert made[1, 3].tolist() == [0, 0, 29, 60]
    assert made[2, 3].tolist() == [1000, 0, 9, 20]
    assert int((made != counts).sum()) == 2


@pytest.fixture
def model():
    made = build_model(ModelConfig(network=None), OURS)
    prepare_model(made, [SceneGraph(BOXES[:2], [2, 3], OURS, relations=[[0, 1, 1]], width=30, height=30)])
    return made


def test_a_file_of_relations_changes_what_the_model_says(model, tmp_path):
    rows = [{"id": 1, "file_name": "a.jpg", "width": 30, "height": 30}]
    boxes = [{"id": k, "image_id": 1, "category_id": c, "bbox": [k, k, 9, 9]} for k, c in ((1, 1), (2, 2))]
    names = [{"id": 1, "name": "person"}, {"id": 2, "name": "surfboard"}]
    relations = [{"image_id": 1, "subject_id": 1, "object_id": 2, "predicate_id": 1}]
    told = {"images": rows, "annotations": boxes, "categories": names, "rel_annotations": relations}
    (tmp_path / "more.json").write_text(json.dumps({**told, "rel_categories": [{"id": 1, "name": "riding"}]}))
    before = model.prior.counts.clone()
    assert count_more(model, MoreRelations(str(tmp_path / "more.json"), 8.0)) == 1
    gained = (model.prior.counts - before).numpy()
    assert np.argwhere(gained).tolist() == [[1, 3, 3], [2, 3, 3]]
    assert gained.sum() == 8
    torch.testing.assert_close(model.prior.by_object[3], model.prior.counts[:, 3].sum(0).float())


def test_nothing_to_add_is_one_line(model, tmp_path):
    assert count_more(model, MoreRelations()) == 0
    told = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "zeppelin"}]}
    path = tmp_path / "more.json"
    path.write_text(json.dumps({**told, "rel_annotations": [], "rel_categories": [{"id": 1, "name": "on"}]}))
    with pytest.raises(DataError, match=r"more\.json: no relation has"):
        count_more(model, MoreRelations(str(path)))
