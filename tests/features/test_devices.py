"""Batches on devices that this machine may not have: a fake tensor knows its device and holds no numbers."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from models.model_cases import random_graphs
from scenegpi.features.batch import SceneBatch, kept_dtype
from scenegpi.features.geometry import precise


def test_mps_gets_single_precision_and_others_what_they_were():
    batch = SceneBatch.of(random_graphs((3, 4)))
    assert batch.boxes.dtype == batch.sizes.dtype == torch.float64
    for name in ("boxes", "sizes", "label_dist", "batch", "edge_index"):
        tensor = getattr(batch, name)
        assert kept_dtype(tensor, torch.device("mps")) != torch.float64
        for other in ("cpu", "cuda:1", "meta"):
            assert kept_dtype(tensor, torch.device(other)) == tensor.dtype
    assert batch.to("meta").boxes.dtype == torch.float64


def test_geometry_is_precise_where_the_device_allows_it():
    fake = FakeTensor(FakeTensorMode(), torch.empty(2, 4, device="meta"), torch.device("mps"))
    assert precise(fake).dtype == torch.float32
    assert precise(torch.zeros(2, 4)).dtype == torch.float64
