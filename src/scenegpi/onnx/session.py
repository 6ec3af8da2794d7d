"""An ONNX file, opened by onnxruntime and checked: one of ours, or any."""

from __future__ import annotations

import os
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

from scenegpi.errors import DataError, require
from scenegpi.files import read_bytes
from scenegpi.onnx.format import FORMS, Form

MAX_FILE = 1 << 30
SILENT = 4
"""The level of onnxruntime's own log: lower ones print names from the file as they are."""
SECONDS = 5.0
"""That a run which is stopped may take to end."""


class Session:
    """A file of one form: `run` takes and gives arrays by name.

    Args:
        file: a path, or the bytes of such a file.
        form: what it must be; None for any file of anyone's.
        threads: of a call; 0 leaves it to onnxruntime.
    """

    def __init__(self, file: str | Path | bytes, form: Form | None = None, threads: int = 1) -> None:
        self.where = "ONNX model" if isinstance(file, bytes) else str(file)
        data = file if isinstance(file, bytes) else read_bytes(file, MAX_FILE)
        self._session = _session(data, threads, self.where)
        try:
            self.metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        except UnicodeDecodeError:
            raise DataError(self.where, "its metadata is not UTF-8") from None
        found = self.metadata.get("scenegpi", "")
        if form is not None and found != FORMS[form]:
            known = found in FORMS.values()
            why = f"a {found.split()[0]!r} file, which onnxruntime runs but a Predictor does not" if known else ""
            why = why or f"not a file that this version exported ({FORMS[form]!r}, found {found!r:.40})"
            raise DataError(self.where, why)
        self.inputs = {each.name: each.shape for each in self._session.get_inputs()}
        self.types = {each.name: each.type for each in self._session.get_inputs()}
        self.outputs = {each.name: each.shape for each in self._session.get_outputs()}

    def run(self, names: list[str], given: dict[str, Any]) -> list[Any]:
        """The outputs of these names; inputs that the file does not have are left out.

        In a thread of its own: a file may go on for ever, and a signal must be able to stop it.
        """
        import onnxruntime

        options = onnxruntime.RunOptions()
        options.log_severity_level = SILENT
        feeds = {name: given[name] for name in self.inputs}
        answer: Future[list[Any]] = Future()

        def work() -> None:
            try:
                answer.set_result(self._session.run(names, feeds, options))
            except Exception as error:  # onnxruntime's own classes, one for each status
                answer.set_exception(DataError(self.where, f"onnxruntime cannot run it ({_first_line(error)})"))

        thread = Thread(target=work, daemon=True)
        thread.start()
        try:
            return answer.result()
        except (KeyboardInterrupt, SystemExit):
            options.terminate = True
            thread.join(SECONDS)
            raise


def _session(data: bytes, threads: int, where: str) -> Any:
    require("onnx", "onnx", "onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = SILENT
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own classes, one for each status
        raise DataError(where, f"onnxruntime cannot load it ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return f"{next(iter(str(error).splitlines()), '')!s:.200}"
