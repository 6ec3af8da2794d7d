"""Photos: files of any kind -> (H, W, 3) bytes, or one line that says why not.

Grey, palette, transparent (laid on white), CMYK and 16-bit pictures come out as plain RGB, turned as their EXIF note
says. Of an animation the first frame counts. Nothing in the file is trusted: its size is checked before its pixels
are unpacked.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from scenegpi.errors import DataError
from scenegpi.files import check_file
from scenegpi.graph import SceneGraph

Photo = NDArray[np.uint8]

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
MOST_PIXELS = 100_000_000
MOST_BYTES = 1 << 29


def open_photo(path: str | Path) -> Photo:
    """The photo as (H, W, 3) bytes; DataError with one line where it can't be read."""
    path = Path(path)
    check_file(path, MOST_BYTES)
    try:
        # Pillow warns of large pictures; the bound below refuses them.
        with warnings.catch_warnings(action="ignore"), Image.open(path, formats=FORMATS) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise DataError(path, f"{width:,} x {height:,} pixels, more than the {MOST_PIXELS:,} this reader takes")
            image.load()
            return np.asarray(_rgb(_upright(image)))
    except DataError:
        raise
    except Exception as error:  # decoders fail in many ways on a broken file
        raise DataError(path, f"is no photo that can be read ({_reason(error)})") from None


def as_photo(image: Any) -> Photo:
    """A path, a Pillow image or an array (grey, RGB or RGBA bytes) -> (H, W, 3) bytes."""
    if isinstance(image, str | Path):
        return open_photo(image)
    if isinstance(image, Image.Image):
        return np.asarray(_rgb(_upright(image)))
    array = np.asarray(image)
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        raise DataError("image", f"an array of {array.dtype} and shape {array.shape}, expected (H, W, 3) of bytes")
    if not array.size:
        raise DataError("image", f"no pixels: shape {array.shape}")
    if array.ndim == 3 and array.shape[2] == 3:
        return np.ascontiguousarray(array)
    return np.asarray(_rgb(Image.fromarray(array)))


def photo_boxes(graph: SceneGraph, photo: Photo) -> NDArray[np.float64]:
    """The boxes (N, 4) in pixels of the photo, which may have another size than the graph's image."""
    height, width = photo.shape[:2]
    scale = [width / graph.width if graph.width else 1.0, height / graph.height if graph.height else 1.0]
    return graph.boxes * np.array(scale * 2)


def _upright(image: Image.Image) -> Image.Image:
    """As the camera's note on orientation says; a note that can't be read is no note."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception:
        return image


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_bytes(np.asarray(image))).convert("RGB")
    if image.has_transparency_data:
        clear = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Whole numbers of 16 bits, or real ones (0 to 1, or to 255), as bytes."""
    values = np.nan_to_num(values.astype(np.float32))
    top = float(values.max(initial=0.0))
    scale = 255.0 if top <= 1 else 1.0 if top <= 255 else 1 / 257
    return (values * scale).round().clip(0, 255).astype(np.uint8)


def _reason(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    # Pillow repeats the path, which stands at the head of the line already.
    return text.split(" '")[0] if text.startswith("cannot identify image file") else text


def photo_size(path: Path) -> tuple[int, int]:
    """Width and height of a photo as it is seen, without unpacking its pixels; DataError if it is none."""
    try:
        with Image.open(path, formats=FORMATS) as image:
            turned = image.getexif().get(0x0112, 1) >= 5  # orientations 5 to 8 lay the picture on its side
            return (image.height, image.width) if turned else (image.width, image.height)
    except Exception as error:
        raise DataError(path, f"cannot be read as an image ({type(error).__name__})") from None
