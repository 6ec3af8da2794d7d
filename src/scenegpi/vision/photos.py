"""Photos: files of any kind -> (H, W, 3) bytes, or a one-line error.

Grey, palette, transparent (laid on white), CMYK and 16-bit pictures come out as plain RGB, with their EXIF
orientation applied. For an animation the first frame is used. A picture of more than 16 million pixels is reduced by 2,
4 or 8: `photo_size` (scenegpi.data.images) gives the original size, which boxes refer to, and `pixels_and_boxes` scales
boxes along. Nothing in the file is trusted (scenegpi.data.photo_files).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from scenegpi.data.photo_files import KINDS, MAX_BYTES, opened_photo
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph

Photo = NDArray[np.uint8]
T = TypeVar("T")

FORMATS = tuple(KINDS)
MOST_BYTES = MAX_BYTES
MOST_PIXELS = 16_000_000
"""Maximum pixels of the result; a larger picture is reduced while it is read."""
BAND = 1 << 20  # pixels converted at a time


class EncodedPhoto:
    """A photo that is opened and unpacked once, with the networks' results on it, for any number of calls.

    `pixels` (H, W, 3) bytes; `size` width and height that boxes refer to (a very large file comes out smaller); `path`
    where its file is, or None.
    """

    def __init__(self, pixels: Photo, size: tuple[int, int] | None = None, path: Path | None = None) -> None:
        self.pixels, self.size, self.path = pixels, size or (pixels.shape[1], pixels.shape[0]), path
        self._computed: dict[int, tuple[object, Any]] = {}

    @classmethod
    def of(cls, image: Any) -> EncodedPhoto:
        """A path, a file's content, an open file, a Pillow image or an array; an encoded photo is unchanged."""
        if isinstance(image, EncodedPhoto):
            return image
        if isinstance(image, str | Path):
            return cls(*_opened(image), Path(image))
        data = _file_bytes(image)
        return cls(as_photo(image)) if data is None else cls(*_opened(data))

    def once(self, owner: object, compute: Callable[[], T]) -> T:
        """The result of `compute`, computed once for each owner (a network, a detector)."""
        if id(owner) not in self._computed:
            self._computed[id(owner)] = (owner, compute())  # the owner is kept alive, so that its id stays unique
        found: T = self._computed[id(owner)][1]
        return found


def _file_bytes(image: Any) -> bytes | None:
    """The content of a photo's file, given as bytes or as an open file; None for anything else."""
    if isinstance(image, bytes | bytearray | memoryview):
        return bytes(image)
    if isinstance(image, Image.Image) or not hasattr(image, "read"):
        return None
    try:
        data = image.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataError("image", f"cannot be read ({error})") from None
    if not isinstance(data, bytes):
        raise DataError("image", "a file opened in text mode, expected binary mode ('rb')")
    return data


def open_photo(path: str | Path) -> Photo:
    """The photo as (H, W, 3) bytes, at most MOST_PIXELS; DataError if it can't be read."""
    return _opened(path)[0]


def _opened(path: str | Path | bytes) -> tuple[Photo, tuple[int, int]]:
    """The pixels, and the original size."""
    with opened_photo(path) as photo:
        image = photo.image
        factor = _reduction(*image.size)
        if factor > 1 and photo.kind == "JPEG":
            image.draft(image.mode, (image.width // factor, image.height // factor))
            factor = 1
        image.load()
        return _turned(_rgb(image, factor), photo.turn), photo.size


def as_photo(image: Any) -> Photo:
    """A path, a Pillow image, an array (grey, RGB or RGBA bytes) or an encoded photo -> (H, W, 3) bytes."""
    if isinstance(image, EncodedPhoto):
        return image.pixels
    if isinstance(image, str | Path):
        return open_photo(image)
    if isinstance(image, Image.Image):
        if not image.width * image.height:
            raise DataError("image", f"no pixels: {image.width} x {image.height}")
        try:
            return _rgb(_upright(image))
        except Exception as error:  # a closed image, or one from a broken file
            raise DataError("image", f"cannot be read ({error})") from None
    data = _file_bytes(image)
    if data is not None:
        return _opened(data)[0]
    array = np.asarray(image)
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        raise DataError("image", f"an array of {array.dtype} and shape {array.shape}, expected (H, W, 3) of bytes")
    if not array.size:
        raise DataError("image", f"no pixels: shape {array.shape}")
    if array.ndim == 3 and array.shape[2] == 3:
        return np.ascontiguousarray(array)
    return _rgb(Image.fromarray(array))


def photo_boxes(graph: SceneGraph, photo: Photo, size: tuple[int, int] | None = None) -> NDArray[np.float64]:
    """The boxes (N, 4) in pixels of the photo, which may have another size than the graph's image.

    `size` is the image's width and height where the graph does not tell them; without it the photo's own.
    """
    height, width = photo.shape[:2]
    across, down = graph.width or (size or (width,))[0], graph.height or (size or (0, height))[1]
    return graph.boxes * np.array([width / across, height / down] * 2)


def pixels_and_boxes(image: Any, graph: SceneGraph) -> tuple[Photo, NDArray[np.float64]]:
    """A photo, as for `as_photo`, and the graph's boxes in its pixels, also where a large file came out smaller."""
    photo = EncodedPhoto.of(image)
    return photo.pixels, photo_boxes(graph, photo.pixels, photo.size)


def as_square(image: Image.Image, side: int) -> Photo:
    """A photo stretched to a square: (3, side, side) bytes."""
    whole = image.size == (side, side)
    small = image if whole else image.resize((side, side), Image.Resampling.BILINEAR, reducing_gap=3.0)
    return np.array(small).transpose(2, 0, 1)


def _reduction(width: int, height: int) -> int:
    """1, 2, 4 or 8: the divisor of the sides."""
    return next((f for f in (1, 2, 4) if width * height <= MOST_PIXELS * f * f), 8)


def _upright(image: Image.Image) -> Image.Image:
    """Applies the EXIF orientation; an unreadable one is ignored."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception:
        return image


def _turned(photo: Photo, turn: int) -> Photo:
    """Turns by the EXIF orientation: 2 to 4 are mirrored or upside down, 5 to 8 on their side."""
    if turn >= 5:
        photo = photo.swapaxes(0, 1)
    if turn in (2, 3, 6, 7):
        photo = photo[:, ::-1]
    if turn in (3, 4, 7, 8):
        photo = photo[::-1]
    return np.ascontiguousarray(photo)


def _rgb(image: Image.Image, factor: int = 1) -> Photo:
    """The pixels as RGB, each side divided by `factor`, band by band: a second whole copy may not fit."""
    width, height = image.size
    photo = np.empty((-(-height // factor), -(-width // factor), 3), dtype=np.uint8)
    scale = _scale(image) if _is_deep(image) else 1.0
    row = 0
    for band in _bands(image, max(BAND // width // 8 * 8, 8)):
        part = _reduced(_rgb_band(band, scale), factor)
        photo[row : row + part.height] = np.asarray(part)
        row += part.height
    return photo


def _bands(image: Image.Image, rows: int) -> Iterator[Image.Image]:
    for top in range(0, image.height, rows):
        yield image.crop((0, top, image.width, min(top + rows, image.height)))


def _reduced(image: Image.Image, factor: int) -> Image.Image:
    return image if factor == 1 else image.reduce(factor)


def _is_deep(image: Image.Image) -> bool:
    return image.mode.startswith("I") or image.mode == "F"


def _scale(image: Image.Image) -> float:
    """A function that turns 16-bit whole numbers, or real ones (0 to 1, or to 255), into bytes."""
    bands = _bands(image, max(BAND // image.width, 1))
    top = max(float(np.nan_to_num(np.asarray(band, dtype=np.float32)).max(initial=0.0)) for band in bands)
    return 255.0 if top <= 1 else 1.0 if top <= 255 else 1 / 257


def _rgb_band(image: Image.Image, scale: float) -> Image.Image:
    if _is_deep(image):
        values = np.nan_to_num(np.asarray(image, dtype=np.float32))
        return Image.fromarray((values * scale).round().clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.has_transparency_data:
        clear = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")
