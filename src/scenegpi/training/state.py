"""The state that a run goes on from (last.ckpt): written whole, read without running what is in it, and checked.

What Lightning needs is looked up by name and compared with this run before anything is taken over: a file of another
run, or a damaged one, is refused in one line that names the field.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from torch import Tensor

from scenegpi.errors import DataError
from scenegpi.files import check_file, whole_file

_FIELDS: dict[str, type] = {
    "epoch": int,
    "global_step": int,
    "pytorch-lightning_version": str,
    "state_dict": dict,
    "loops": dict,
    "callbacks": dict,
    "optimizer_states": list,
    "lr_schedulers": list,
}
_MEAN: dict[str, type] = {"current_model_state": dict, "averaging_state": dict}
_WRITER: dict[str, type] = {"rows": list, "best": float, "metrics": dict}
_ADAM = {"step", "exp_avg", "exp_avg_sq"}


class StateFile(TorchCheckpointIO):
    """Reads and writes the state of a run.

    Args:
        weights: the tensors of the module that is trained, by name.
        averaged: a running mean of them is part of the state.
        logged: the table of the epochs is, too.
    """

    def __init__(self, weights: Mapping[str, Tensor], averaged: bool, logged: bool = True) -> None:
        self.weights, self.averaged, self.logged = weights, averaged, logged

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        memory = io.BytesIO()  # torch's own writer does not say that a disk is full
        torch.save(checkpoint, memory)
        with whole_file(Path(path)) as part:
            part.write_bytes(memory.getbuffer())

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = True) -> dict[str, Any]:
        check_file(Path(path))
        try:
            state = torch.load(path, map_location=map_location or "cpu", weights_only=True)
        except Exception as error:  # what torch raises depends on where the file is broken
            raise DataError(path, f"is no state to resume from ({type(error).__name__})") from None
        try:
            self._check(state)
        except _ForeignError as error:
            raise DataError(path, str(error)) from None
        return dict(state)

    def _check(self, state: Any) -> None:
        _check_fields("", state, _FIELDS | (_MEAN if self.averaged else {}))
        for field in ("state_dict", *(["current_model_state"] if self.averaged else [])):
            _check_tensors(field, state[field], self.weights)
        _check_moments(state["optimizer_states"])
        if len(state["lr_schedulers"]) != 1:
            raise _ForeignError(f"lr_schedulers: expected 1, found {len(state['lr_schedulers'])}")
        if self.logged:
            self._check_log(state)

    def _check_log(self, state: dict[str, Any]) -> None:
        writer = state["callbacks"].get("RunFolder")
        _check_fields("callbacks.RunFolder", writer, _WRITER)
        rows = writer["rows"]
        if not rows or not all(isinstance(row, dict) and all(map(_is_number, row.values())) for row in rows):
            raise _ForeignError("callbacks.RunFolder.rows: expected a table of numbers for each epoch")
        for name, entry in writer["metrics"].items():
            figures = entry.get("figures") if isinstance(entry, dict) else None
            if not isinstance(figures, dict) or not all(map(_is_number, figures.values())):
                raise _ForeignError(f"callbacks.RunFolder.metrics.{name!s:.40}: expected figures")
        done = _at(state["loops"], "fit_loop", "epoch_progress", "current", "processed")
        if state["epoch"] + 1 != len(rows) or done != len(rows):
            raise _ForeignError(f"epoch: {state['epoch']!r:.20} and {done!r:.20} done, but {len(rows)} in the log")


class _ForeignError(Exception):
    """What is not as this run would have written it: the field first."""


def check_optimizer(path: Path, optimizer: torch.optim.Optimizer) -> None:
    """DataError unless what an optimizer took over from the state at `path` fits its weights."""
    for g, group in enumerate(optimizer.param_groups):
        for name, default in optimizer.defaults.items():
            if type(group.get(name)) is not type(default):
                where = f"optimizer_states.param_groups.{g}.{name}"
                raise DataError(path, f"{where}: expected {type(default).__name__}, found {group.get(name)!r:.40}")
        for k, weight in enumerate(group["params"]):
            where = f"optimizer_states.state, weight {k} of group {g}"
            for name, value in optimizer.state.get(weight, {}).items():
                shape = () if name == "step" else tuple(weight.shape)
                if not isinstance(value, Tensor) or tuple(value.shape) != shape or not bool(value.isfinite().all()):
                    raise DataError(path, f"{where}, {name}: expected finite numbers of shape {shape}")


def _check_fields(where: str, table: Any, fields: Mapping[str, type]) -> None:
    if not isinstance(table, dict):
        raise _ForeignError(f"{where or 'state'}: expected a table, found {type(table).__name__}")
    for name, kind in fields.items():
        full = f"{where}.{name}".lstrip(".")
        if name not in table:
            raise _ForeignError(f"{full}: missing")
        if not isinstance(table[name], kind) or isinstance(table[name], bool):
            raise _ForeignError(f"{full}: expected {kind.__name__}, found {type(table[name]).__name__}")


def _check_tensors(where: str, found: Mapping[Any, Any], wanted: Mapping[str, Tensor]) -> None:
    for name in [*(name for name in wanted if name not in found), *(name for name in found if name not in wanted)]:
        raise _ForeignError(f"{where}.{name!s:.100}: {'missing' if name in wanted else 'not a weight of this run'}")
    for name, value in wanted.items():
        shape = tuple(value.shape)
        given = found[name]
        if not isinstance(given, Tensor) or tuple(given.shape) != shape or given.dtype != value.dtype:
            is_now = f"{tuple(given.shape)} of {given.dtype}" if isinstance(given, Tensor) else type(given).__name__
            raise _ForeignError(f"{where}.{name}: expected {shape} of {value.dtype}, found {is_now}")
        if not bool(given.isfinite().all()):
            raise _ForeignError(f"{where}.{name}: holds a number that is not finite")


def _check_moments(states: list[Any]) -> None:
    if len(states) != 1:
        raise _ForeignError(f"optimizer_states: expected 1, found {len(states)}")
    _check_fields("optimizer_states", states[0], {"state": dict, "param_groups": list})
    if not states[0]["state"]:
        raise _ForeignError("optimizer_states.state: empty")
    for number, found in states[0]["state"].items():
        if not isinstance(found, dict) or set(found) != _ADAM:
            wanted = ", ".join(sorted(_ADAM))
            raise _ForeignError(f"optimizer_states.state.{number!s:.20}: expected {wanted}, found {found!r:.60}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _at(table: Any, *keys: str) -> Any:
    """A value in nested tables; None where there is none."""
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table
