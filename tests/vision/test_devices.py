"""Every tensor of the photo network's way is on its device: "meta" here, as a CPU build of torch has no fake GPU.

(FakeTensorMode makes tensors on "cuda:0" and finds mixed devices, but indexing and gradients take CUDA's device guard
before it sees them, which a CPU build does not have.)
"""

from __future__ import annotations

import pytest
import torch

from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel
from vision.vision_cases import TINY_EYES, VOCABULARY


def test_the_photo_network_finds_looks_and_names_on_its_device():
    vision = VisionModel(TINY_EYES, VOCABULARY).eval().to("meta")
    maps = vision.extractor.maps_of(torch.zeros(3, 64, 64, device="meta"))
    finder = Finder(vision, suppress=lambda boxes, score, overlap, most: torch.arange(most, device=boxes.device))
    _, boxes, evidence = finder.looked(maps)
    size = torch.tensor([640.0, 480.0], dtype=torch.float64)
    chosen = torch.zeros(5, 4, dtype=torch.float64)  # boxes that were chosen are on the CPU
    found = [boxes, finder.chance(evidence), finder.label_dist(maps, chosen, size, 64 / size)]
    assert {each.device.type for each in (*found, *(each.values for each in maps))} == {"meta"}
    with pytest.raises(RuntimeError, match="device"):  # so a tensor that was left on the CPU is noticed
        vision.extractor.maps_of(torch.zeros(3, 64, 64))
