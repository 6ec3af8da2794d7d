"""An ONNX file of ours, opened by onnxruntime and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenegpi.errors import DataError
from scenegpi.files import read_bytes
from scenegpi.onnx.format import FORMS, Form

MAX_FILE = 1 << 30


class Session:
    """A file of one form: `run` takes and gives arrays by name.

    Args:
        file: a path, or the bytes of such a file.
        form: what it must be.
        threads: of a call; 0 leaves it to onnxruntime.
    """

    def __init__(self, file: str | Path | bytes, form: Form, threads: int = 1) -> None:
        self.where = "ONNX model" if isinstance(file, bytes) else str(file)
        # As bytes: a file that refers to others beside it is refused.
        data = file if isinstance(file, bytes) else read_bytes(file, MAX_FILE)
        self._session = _session(data, threads, self.where)
        self.metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        found = self.metadata.get("scenegpi", "")
        if found != FORMS[form]:
            known = found in FORMS.values()
            why = f"a {found.split()[0]!r} file, which onnxruntime runs but a Predictor does not" if known else ""
            why = why or f"not a file that this version exported ({FORMS[form]!r}, found {found!r:.40})"
            raise DataError(self.where, why)
        self.inputs = {each.name: each.shape for each in self._session.get_inputs()}
        self.outputs = {each.name: each.shape for each in self._session.get_outputs()}

    def run(self, names: list[str], given: dict[str, Any]) -> list[Any]:
        """The outputs of these names; inputs that the file does not have are left out."""
        try:
            found: list[Any] = self._session.run(names, {name: given[name] for name in self.inputs})
        except Exception as error:  # onnxruntime's own classes, one for each status
            raise DataError(self.where, f"onnxruntime cannot run it ({_first_line(error)})") from None
        return found


def _session(data: bytes, threads: int, where: str) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise DataError("onnx", "the package onnxruntime is missing: pip install 'scenegpi[onnx]'") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own classes, one for each status
        raise DataError(where, f"onnxruntime cannot load it ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return f"{next(iter(str(error).splitlines()), '')!s:.200}"
