"""Detectors of transformers: small random checkpoints of each family, saved by their own code and loaded from disk."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from scenegpi.errors import DataError
from scenegpi.prediction.finding import FinderSpec, check_finder
from scenegpi.vision.detect import Detector
from scenegpi.vision.detectors import hf
from vision import hf_cases

FIND = ("dog", "leash", "red ball")
PHOTO = np.random.default_rng(0).integers(0, 255, (50, 80, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def folder(name):
        if name not in made:
            made[name] = hf_cases.save(name, tmp_path_factory.mktemp(name))
        return made[name]

    return folder


@pytest.mark.parametrize("name", hf_cases.FAMILIES)
def test_each_family_finds_boxes_in_the_photo(name, folders):
    detector = hf.load(str(folders(name)), FIND)
    opened = name in ("owlv2", "grounding")
    assert isinstance(detector, Detector)
    assert detector.names == (FIND if opened else ("cat", "dog", "hat"))
    detector.floor = 0.0
    found = detector.detect(PHOTO)
    assert len(found) >= 3
    assert found.size == (80, 50)
    assert (found.boxes >= 0).all()
    assert (found.boxes <= [80, 50, 80, 50]).all()
    assert (np.diff(found.scores) <= 0).all()
    detector.floor = 1.0
    assert len(detector.detect(PHOTO)) == 0


def test_boxes_and_labels_are_those_of_the_model(folders):
    """By the model's raw output: softmax with a last class for nothing, boxes as centre and size in fractions."""
    detector = hf.load(str(folders("detr")), ())
    detector.floor = 0.0
    found = detector.detect(PHOTO)
    inputs = detector.processor(images=PHOTO, return_tensors="pt")
    with torch.inference_mode():
        out = detector.model(**inputs)
    score, label = out.logits[0].softmax(-1)[:, :-1].max(-1)
    centre, size = out.pred_boxes[0].split(2, -1)
    boxes = torch.cat([centre - size / 2, centre + size / 2], -1) * torch.tensor([80, 50, 80, 50])
    order = score.argsort(descending=True, stable=True)
    assert np.allclose(found.scores, score[order], atol=1e-6)
    assert found.labels.tolist() == label[order].tolist()
    assert np.allclose(found.boxes, boxes[order], atol=1e-3)


def test_a_name_is_scored_by_its_own_tokens(folders):
    detector = hf.load(str(folders("grounding")), FIND)
    ids = torch.tensor([2, 5, 4, 6, 4, 7, 8, 4, 3])  # [CLS] dog . leash . red ball . [SEP]
    tokens = torch.arange(9.0).repeat(2, 1) / 10
    assert torch.allclose(detector._by_name(tokens, ids), torch.tensor([[0.1, 0.3, 0.6]] * 2))


def test_more_names_than_a_text_holds_are_asked_in_turn(folders):
    """Texts of at most 6 tokens: what a name scores does not depend on how many there are, only the text does."""
    names = ("dog", "leash", "red ball", "dog.", "ball")
    detector = hf.load(str(folders("grounding")), names)
    texts = list(detector._texts())
    assert texts == [(0, "dog. leash."), (2, "red ball. dog."), (4, "ball.")]
    detector.floor = 0.0
    assert set(detector.detect(PHOTO).labels.tolist()) <= set(range(5))


def test_what_can_not_be_loaded_is_said_in_one_line(folders, tmp_path, monkeypatch):
    for name, message in (("nowhere", "neither a folder nor"), (str(tmp_path), "cannot be loaded")):
        with pytest.raises(DataError, match=message) as told:
            hf.load(name, FIND)
        assert "\n" not in str(told.value)
    folder = folders("yolos")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(DataError, match="'bert' model is not a supported detector"):
        hf.load(str(tmp_path), FIND)
    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / name).write_text((folder / name).read_text())
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(DataError, match="cannot be loaded"):
        hf.load(str(tmp_path), FIND)
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights.pop("bbox_predictor.layers.0.weight")
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(DataError, match=r"1 of its weights are missing \(bbox_predictor"):
        hf.load(str(tmp_path), FIND)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install 'scenegpi\[hf\]'"):
        check_finder("hf:org/name")


def test_a_model_of_the_hub_without_a_network(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        DataError, match=r"^hf:no-such-org/name: cannot be loaded .*; without a network give hf:FOLDER$"
    ) as told:
        hf.load("no-such-org/name", FIND)
    assert "\n" not in str(told.value)


def test_what_to_find_is_for_open_vocabularies(tmp_path):
    assert FinderSpec.of("hf:a/b", find=" dog,red  ball,,dog").find == ("dog", "red ball")
    with pytest.raises(DataError, match="--find: yolov4-tiny finds only its own labels"):
        check_finder(FinderSpec.of("yolov4-tiny", find="dog"))
    with pytest.raises(DataError, match="expected names separated by commas"):
        FinderSpec.of("hf:a/b", find=" , ")
    with pytest.raises(DataError, match="--find: needs a detector"):
        FinderSpec.of(None, find="dog")
