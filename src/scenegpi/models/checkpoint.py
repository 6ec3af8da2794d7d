"""A model on disk: a folder, written whole or not at all, that is safe to read from untrusted sources.

    model.safetensors   weights (perhaps in half precision), scales, counts (mostly 0, so stored as cells and values)
    config.json         its settings, its calibration, and how it was trained
    vocabulary.json     the names behind its numbers
    metrics.json        its figures, each with protocol, data and number of images
    trained_on.bin      a fingerprint of the training images; some models have none
    README.md           the model card

Nothing is unpickled. A configuration is checked field by field, with bounds, before anything is built; the shapes in
the file are compared with it before anything is read, and a weight that is not finite is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from scenegpi import __version__
from scenegpi.errors import DataError, OptionError, naming
from scenegpi.files import check_file, read_object, whole_folder, write_json
from scenegpi.models.build import SceneModel, build_model
from scenegpi.models.calibration import Calibrations
from scenegpi.models.card import model_card
from scenegpi.models.config import ModelConfig
from scenegpi.models.fingerprint import Fingerprint
from scenegpi.models.shipped import SMALL, find_model, read_labels
from scenegpi.options import override, plain

FORMAT = 2
TRAINED_ON = "trained_on.bin"
_SPARSE = ("cells", "values")


def save_model(
    model: SceneModel,
    folder: str | Path,
    metrics: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    half: bool = False,
) -> Path:
    """Writes the folder: `metrics` by the name of what was scored, `training` as a record of how it was made.

    With `half` matrices are stored in half precision: half the size, outputs that differ in the fourth digit.
    """
    from safetensors.torch import save_file

    folder = Path(folder)
    figures, record = dict(metrics or {}), dict(training or {})
    config = {"format": FORMAT, "version": __version__, "model": plain(model.config)}
    config |= {"calibration": plain(model.calibration), "training": record}
    with whole_folder(folder, overwrite) as part:
        weights = {name for name, each in model.named_parameters() if each.dim() > 1} if half else set()
        save_file(_packed(model.state_dict(), weights), part / "model.safetensors", {"scenegpi": f"model {FORMAT}"})
        (part / "model.safetensors").chmod(0o644)
        write_json(part / "config.json", config)
        write_json(part / "vocabulary.json", model.labels.to_dict())
        write_json(part / "metrics.json", figures)
        (part / "README.md").write_text(model_card(folder.name, model, figures, record), encoding="utf-8")
        if model.trained_on is not None:
            model.trained_on.write(part / TRAINED_ON)
    if model.trained_on is None:
        (folder / TRAINED_ON).unlink(missing_ok=True)  # of an earlier model in the folder
    return folder


def round_to_half(model: nn.Module) -> None:
    """Rounds, in place, the matrices that `save_model` stores in half precision."""
    for each in model.parameters():
        if each.dim() > 1:
            each.data = each.data.half().float()


def load_model(source: str | Path, device: str | torch.device = "cpu") -> SceneModel:
    """The model of a folder, or one that ships in the package by its name; DataError with one line otherwise."""
    folder = find_model(source)
    path = folder / "config.json"
    data = read_object(path, SMALL)
    if data.get("format") != FORMAT:
        raise DataError(path, f"format: {data.get('format')!r:.20} is not supported, only {FORMAT}")
    with naming(path, OptionError):
        calibration = override(Calibrations(), data.get("calibration", {}), "calibration")
        model = build_model(override(ModelConfig(), data.get("model"), "model"), read_labels(folder))
    model.load_state_dict(read_tensors(folder / "model.safetensors", model.state_dict()), assign=True)
    model.calibration = calibration
    if (folder / TRAINED_ON).exists():
        model.trained_on = Fingerprint.read(folder / TRAINED_ON)
    return model.to(device).eval()


def read_tensors(path: Path, wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a safetensors file, which must have the wanted names, shapes and types; DataError otherwise."""
    from safetensors import SafetensorError, safe_open

    check_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            parts = {part: value for name, value in wanted.items() for part in _names(name, value)}
            for part in sorted(parts.keys() ^ set(file.keys())):
                raise DataError(path, f"{part}: {'missing' if part in parts else 'not a tensor of this model'}")
            for part, value in parts.items():
                _check_header(path, part, file.get_slice(part), value)
            return {name: _read(path, file, name, value) for name, value in wanted.items()}
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise DataError(path, f"cannot be read ({error})") from None


def _check_header(path: Path, name: str, found: Any, wanted: Tensor) -> None:
    shape, dtype = tuple(found.get_shape()), found.get_dtype()
    if _is_sparse(wanted):
        if len(shape) != 1 or shape[0] > wanted.numel() or dtype != "I32":
            raise DataError(path, f"{name}: expected a list of at most {wanted.numel():,} whole numbers")
        return
    if shape != tuple(wanted.shape):
        raise DataError(path, f"{name}: shape {shape}, but config.json makes it {tuple(wanted.shape)}")
    if dtype not in ("F32", "F16"):
        raise DataError(path, f"{name}: numbers of type {dtype}, expected F32 or F16")


def _read(path: Path, file: Any, name: str, wanted: Tensor) -> Tensor:
    if not _is_sparse(wanted):
        value: Tensor = file.get_tensor(name)
        if not bool(torch.isfinite(value).all()):
            raise DataError(path, f"{name}: contains a number that is not finite")
        return value.float().clone()  # mapped files may be unaligned, which changes the last bits of products
    cells, values = (file.get_tensor(part) for part in _names(name, wanted))
    if cells.shape != values.shape:
        raise DataError(path, f"{name}: expected two lists of one length")
    if len(cells) and (int(cells.min()) < 0 or int(cells.max()) >= wanted.numel() or int(values.min()) < 0):
        raise DataError(path, f"{name}: a cell or a count outside its range")
    dense = torch.zeros(wanted.numel(), dtype=torch.int32)
    dense[cells.long()] = values
    return dense.view(wanted.shape)


def _packed(state: Mapping[str, Tensor], half: Set[str]) -> dict[str, Tensor]:
    """The tensors as they are stored, those named in `half` in half precision."""
    packed: dict[str, Tensor] = {}
    for name, value in state.items():
        value = value.detach().cpu().contiguous()
        if not _is_sparse(value):
            packed[name] = value.half() if name in half else value.clone()
            continue
        cells = value.flatten().nonzero().flatten()
        packed |= dict(zip(_names(name, value), (cells.int(), value.flatten()[cells]), strict=True))
    return packed


def _is_sparse(value: Tensor) -> bool:
    return value.dtype == torch.int32


def _names(name: str, value: Tensor) -> list[str]:
    return [f"{name}.{part}" for part in _SPARSE] if _is_sparse(value) else [name]
