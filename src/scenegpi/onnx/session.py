"""An ONNX file, ours or anyone's, opened by onnxruntime without trust."""

from __future__ import annotations

import os
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

from scenegpi.errors import DataError, require
from scenegpi.files import read_bytes

MAX_FILE = 1 << 30
SILENT = 4
"""The level of onnxruntime's own log: lower ones print names from the file as they are."""
SECONDS = 5.0
"""How long a run may take to end after it was told to stop."""


class Session:
    """A file (its path, or its bytes): `run` takes and gives arrays by name."""

    def __init__(self, file: str | Path | bytes) -> None:
        require("onnx", "onnx", "onnxruntime")
        import onnxruntime

        self.where = "ONNX model" if isinstance(file, bytes) else str(file)
        data = file if isinstance(file, bytes) else read_bytes(file, MAX_FILE)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = SILENT
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
        try:
            self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
            self.metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        except UnicodeDecodeError:
            raise DataError(self.where, "its metadata is not UTF-8") from None
        except Exception as error:  # onnxruntime has a class for each status
            raise DataError(self.where, f"onnxruntime cannot load it ({_first_line(error)})") from None
        inputs = self._session.get_inputs()
        self.inputs = {each.name: each.shape for each in inputs}
        self.types = {each.name: each.type for each in inputs}
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
            except Exception as error:
                answer.set_exception(DataError(self.where, f"onnxruntime cannot run it ({_first_line(error)})"))

        thread = Thread(target=work, daemon=True)
        thread.start()
        try:
            return answer.result()
        except (KeyboardInterrupt, SystemExit):
            options.terminate = True
            thread.join(SECONDS)
            raise


def _first_line(error: Exception) -> str:
    return f"{next(iter(str(error).splitlines()), '')!s:.200}"
