"""One family of errors, each told in one line that names the file, the image and the field."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

KEPT_DEFECTS = 100_000
"""Number of warnings kept per file; more are only counted. A file with more errors than this is refused."""
MOST_CHARACTERS = 1000
"""Longer messages, and names of images, are cut."""


class SceneGPIError(Exception):
    """Anything wrong that the user can fix: one line, no traceback on the command line."""


class GraphError(SceneGPIError, ValueError):
    """An invalid scene graph; the message starts with the field's name."""


class OptionError(SceneGPIError, ValueError):
    """An invalid setting; one line that starts with the field's name."""


class MetricError(SceneGPIError, ValueError):
    """Input that cannot be scored as asked; one line that names the image and the field, and says what to do."""


class DataError(SceneGPIError):
    """A file that can't be read or written at all. The message is one line and starts with the file's name."""

    def __init__(self, file: str | os.PathLike[str], message: str) -> None:
        self.file, self.message = os.fspath(file), message
        super().__init__(printable(f"{self.file}: {cut(message)}"))

    def __reduce__(self) -> tuple[type[DataError], tuple[str, str]]:
        return type(self), (self.file, self.message)


@contextmanager
def naming(file: str | os.PathLike[str], *kinds: type[ValueError]) -> Iterator[None]:
    """Errors of these kinds become a DataError that names the file."""
    try:
        yield
    except kinds as error:
        raise DataError(file, str(error)) from None


def require(what: str, extra: str, *packages: str, install: str = "") -> None:
    """DataError where `what` needs packages (given by import name) that are not installed.

    `extra` is the extra in pyproject.toml that installs them; `install` is what to give pip if there is no such extra.
    """
    from importlib.util import find_spec

    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        noun = "package" if len(missing) == 1 else "packages"
        source = install or f"'scenegpi[{extra}]'"
        raise DataError(what, f"needs the {noun} {', '.join(missing)}: pip install {source}")


class RowError(DataError):
    """One invalid image of a file; the others may be fine."""


def printable(text: object) -> str:
    """A path, a label or any other text from outside, safe to print, on one line.

    Characters that a terminal would act on are written as \\n, \\x1b, \\x9b: controls (C0 and C1), line ends of every
    kind, marks that change the writing direction; and halves of surrogate pairs, which can't be written at all.
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(count: int, name: str) -> str:
    """A count with its noun: 1 box, 2 boxes."""
    return f"{count:,} {name}{'' if count == 1 else 'es' if name.endswith('x') else 's'}"


def cut(text: str) -> str:
    """The text, or its beginning where it is longer than a line should be."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


def first_line(error: Exception) -> str:
    """The first line of another library's message, or else the name of its error."""
    return f"{next(iter(str(error).splitlines()), '') or type(error).__name__:.200}"


@dataclass(frozen=True, slots=True)
class Defect:
    """One defect of one image. An `error` leaves the image out; a `warning` does not."""

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
    """Collects the defects of one file. With `strict`, the first error ends the reading.

    More than KEPT_DEFECTS errors end it too: such a file is not worth the time and memory to list them.
    """

    file: str
    strict: bool = False
    defects: list[Defect] = field(default_factory=list)
    errors: int = 0
    warnings: int = 0
    skipped: int = 0

    @property
    def first_error(self) -> Defect | None:
        """The first defect for which an image was left out."""
        return next((defect for defect in self.defects if defect.severity == "error"), None)

    def error(self, image: object, where: str, message: str, file: str | None = None) -> None:
        """An image that can't be used."""
        self.errors += 1
        defect = Defect(file or self.file, _name(image), where, cut(message))
        if self.strict:
            raise DataError(defect.file, str(replace(defect, file="")))
        if self.errors > KEPT_DEFECTS:
            first = replace(self.first_error or defect, file="")
            raise DataError(defect.file, f"more than {KEPT_DEFECTS:,} errors, the first: {first}")
        self.defects.append(defect)

    def skip(self, image: object, *problems: object, line: str = "") -> None:
        """An image left out; each problem says "field: message", with the `line` of the file if given."""
        for problem in problems:
            where, colon, message = str(problem).partition(": ")
            where, message = (where, message) if colon else ("", where)
            self.error(image, f"{line}: {where}" if line else where, message)
        self.skipped += 1

    def warning(self, image: object, where: str, message: str, file: str | None = None) -> None:
        """An oddity for which nothing is left out."""
        self.warnings += 1
        if self.warnings <= KEPT_DEFECTS:
            self.defects.append(Defect(file or self.file, _name(image), where, cut(message), "warning"))

    def warn_each(
        self, rows: Sequence[int], say: Callable[[int], tuple[object, str, str]], file: str | None = None
    ) -> None:
        """A warning for each row; `say(row)` gives image, field and message, and is called only while there is room."""
        told = rows[: max(KEPT_DEFECTS - self.warnings, 0)]
        for row in told:
            self.warning(*say(row), file)
        self.warnings += len(rows) - len(told)


def _name(image: object) -> str:
    return "" if image is None else cut(str(image))
