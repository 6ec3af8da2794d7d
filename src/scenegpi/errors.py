"""One family of errors: what can be wrong, said in one line that names the file, the image and the field."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

KEPT_DEFECTS = 100_000


class SceneGPIError(Exception):
    """Anything wrong that the user can mend: one line, no traceback on the command line."""


class GraphError(SceneGPIError, ValueError):
    """A scene graph that makes no sense; the message starts with the field's name."""


class OptionError(SceneGPIError, ValueError):
    """A setting that makes no sense; one line that starts with the field's name."""


class MetricError(SceneGPIError, ValueError):
    """Input that cannot be scored as asked; one line that says which image, which field, and what to do."""


class DataError(SceneGPIError):
    """A file that can't be read or written at all. The message is one line and starts with the file's name."""

    def __init__(self, file: str | os.PathLike[str], message: str) -> None:
        self.file, self.message = os.fspath(file), message
        super().__init__(printable(f"{self.file}: {message}"))

    def __reduce__(self) -> tuple[type[DataError], tuple[str, str]]:
        return DataError, (self.file, self.message)


def printable(text: str) -> str:
    """The text on one line: what a terminal would act on, newlines and escapes, is written as \\n, \\x1b."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing wrong with one image. An `error` costs the image; a `warning` does not."""

    file: str
    image: str
    field: str
    message: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.image and f"image {self.image}", self.field) if part)
        return printable(f"{where}: {self.message}")


@dataclass
class Report:
    """Collects the defects of one file. With `strict`, the first error ends the reading."""

    file: str
    strict: bool = False
    defects: list[Defect] = field(default_factory=list)
    errors: int = 0
    warnings: int = 0
    skipped: int = 0

    @property
    def first_error(self) -> Defect | None:
        """The first defect that cost an image."""
        return next((defect for defect in self.defects if defect.severity == "error"), None)

    def error(self, image: object, where: str, message: str, file: str | None = None) -> None:
        """An image that can't be used."""
        self.errors += 1
        defect = Defect(file or self.file, "" if image is None else str(image), where, message)
        if self.strict:
            raise DataError(defect.file, str(replace(defect, file="")))
        if len(self.defects) < KEPT_DEFECTS:
            self.defects.append(defect)

    def skip(self, image: object, problems: Iterable[Exception]) -> None:
        """An image left out for reasons whose arguments are those of `error`."""
        for problem in problems:
            self.error(image, *problem.args)
        self.skipped += 1

    def warning(self, image: object, where: str, message: str, file: str | None = None) -> None:
        """An oddity that costs nothing."""
        self.warnings += 1
        if len(self.defects) < KEPT_DEFECTS:
            self.defects.append(
                Defect(file or self.file, "" if image is None else str(image), where, message, "warning")
            )
