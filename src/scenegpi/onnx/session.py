"""An ONNX file, opened by onnxruntime and checked: an exported one, or anyone's."""

from __future__ import annotations

import os
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any, Literal

from scenegpi.errors import DataError, first_line, require
from scenegpi.files import read_bytes

Form = Literal["layout", "photo", "find"]
FORMS: dict[Form, str] = {"layout": "layout 1", "photo": "photo 3", "find": "find 4"}
"""The inputs of a file: boxes and labels; a photo and boxes; a photo. A number is raised whenever inputs, outputs,
their meaning, or metadata change."""
PARTS = {
    "layout": (("boxes", "sizes", "label_dist", "counts", "labels_given"), ("labels", "relations", "pairs")),
    "vision": (("square", "size", "seen"), ("named",)),
    "finder": (("square", "size"), ("boxes", "sure", "label_dist")),
}
"""Inputs and outputs of the parts that can be extracted from a file that reads photos. Its own Resize differs from
Pillow's by a few of 255 levels; parts read a square that Pillow resized, so that their answers are those of torch."""
MAX_FILE = 1 << 30
SILENT = 4
"""The level of onnxruntime's own log: lower levels print names from the file unescaped."""
SECONDS = 5.0
"""Seconds to wait for a run that was stopped."""


class Session:
    """A file: `run` takes and gives arrays by name.

    Args:
        file: a path, or the bytes of such a file.
        forms: the forms that are accepted; without any, every ONNX file is.
        part: open only this part (of PARTS).
    """

    form: Form | None = None

    def __init__(self, file: str | Path | bytes, *forms: Form, part: str | None = None) -> None:
        self.where = "ONNX model" if isinstance(file, bytes) else str(file)
        data = file if isinstance(file, bytes) else read_bytes(file, MAX_FILE)
        self._session = _session(data if part is None else _part(data, part, self.where), self.where)
        try:
            self.metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        except UnicodeDecodeError:
            raise DataError(self.where, "its metadata is not UTF-8") from None
        if forms:
            found = self.metadata.get("scenegpi", "")
            self.form = next((form for form in forms if FORMS[form] == found), None)
            if self.form is None:
                known = ", ".join(FORMS[form] for form in forms)
                raise DataError(self.where, f"not a file that this version exported ({known}; found {found!r:.40})")
        inputs = self._session.get_inputs()
        self.inputs = {each.name: each.shape for each in inputs}
        self.types = {each.name: each.type for each in inputs}
        self.outputs = {each.name: each.shape for each in self._session.get_outputs()}

    def run(self, names: list[str], given: dict[str, Any]) -> list[Any]:
        """The outputs with these names; inputs that the file does not have are left out.

        Runs in a separate thread: a file may run for ever, and a signal must be able to stop it.
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
                answer.set_exception(DataError(self.where, f"onnxruntime cannot run it ({first_line(error)})"))

        thread = Thread(target=work, daemon=True)
        try:
            thread.start()  # a signal may come as soon as it runs
            return answer.result()
        except (KeyboardInterrupt, SystemExit):
            options.terminate = True
            if thread.ident is not None:
                thread.join(SECONDS)
            raise


def _session(data: bytes, where: str) -> Any:
    require("onnx", "onnx", "onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = SILENT
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own classes, one for each status
        raise DataError(where, f"onnxruntime cannot load it ({first_line(error)})") from None


def _part(data: bytes, part: str, where: str) -> bytes:
    require("onnx", "onnx", "onnx")
    import onnx

    try:
        found = onnx.utils.Extractor(onnx.load_from_string(data)).extract_model(*map(list, PARTS[part]))
        return bytes(found.SerializeToString())
    except Exception as error:  # from protobuf, onnx, or a file that only claims to be ours
        raise DataError(where, f"its parts cannot be extracted ({str(error)!r:.200})") from None
