"""The command line: parses, calls, prints. The commands live in `scenegpi.commands` and import what they need late."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from scenegpi import __version__
from scenegpi.commands import data, figure, words
from scenegpi.commands.compare import compare
from scenegpi.commands.demo import demo
from scenegpi.commands.eval import eval_command
from scenegpi.commands.experiment import labelling
from scenegpi.commands.models import export, models
from scenegpi.commands.predict import EPILOG, describe, predict
from scenegpi.commands.report import report
from scenegpi.commands.search import index, search
from scenegpi.commands.serve import mcp, serve
from scenegpi.commands.train import train

HELP = """Scene graphs from images, by permutation-invariant structured prediction.

Start with [bold]scenegpi demo[/bold]. Every command has its own [bold]--help[/bold]."""
EXIT_CODES = "Exit codes: 0 success, 1 defects found, 2 unusable input, 3 internal error."

app = typer.Typer(
    name="scenegpi",
    help=HELP,
    epilog=EXIT_CODES,
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data.app, name="data")
app.add_typer(words.app, name="words")
app.add_typer(figure.app, name="figure")
app.command()(demo)
app.command("eval")(eval_command)
app.command(epilog=EPILOG)(predict)
for command in (describe, compare, train, models, export, report, index, search, serve, mcp):
    app.command()(command)
experiment = typer.Typer(help="The experiments of the paper.", no_args_is_help=True)
experiment.command()(labelling)
app.add_typer(experiment, name="experiment")


def _untyped_flags(kind: Any) -> Any:
    """A command or group whose flags show no type: `--force <bool>` reads as if it needed a value."""

    class Untyped(kind):
        def get_params(self, ctx: Any) -> list[Any]:
            params: list[Any] = super().get_params(ctx)
            for param in params:
                if getattr(param, "is_flag", False):
                    param.metavar = ""
            return params

    return Untyped


for each in (app, data.app, words.app, figure.app, experiment):
    each.info.cls = _untyped_flags(TyperGroup)
    for info in each.registered_commands:
        info.cls = _untyped_flags(TyperCommand)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"scenegpi {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")] = False,
) -> None:
    """Options that go before the command."""
    if debug:
        os.environ["SCENEGPI_DEBUG"] = "1"


def main() -> None:
    """Entry point: runs a command. An error becomes one line and an exit code; a signal, 128 plus its number."""
    stops = _behave()
    try:
        try:
            _check_words(sys.argv[1:])
            app()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        if os.environ.get("SCENEGPI_DEBUG"):
            raise
        if stops:  # libraries in C and Rust turn a signal's exception into errors of their own
            sys.exit(128 + stops[0])
        from scenegpi.errors import SceneGPIError, printable

        expected = isinstance(error, SceneGPIError)
        text = str(error)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            expected, text = True, f"the output cannot be written ({error.strerror})"
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the interpreter flushes it once more on its way out
        elif isinstance(error, RuntimeError) and "Symlink loop" in text:
            expected, text = True, f"{text} (a link that points to itself)"
        elif isinstance(error, FileNotFoundError) and not _has_folder():
            expected, text = True, "the current folder no longer exists"
        elif not expected:
            text = f"internal error (please report it): {type(error).__name__}: {error}; scenegpi --debug shows where"
        print(f"scenegpi: {printable(text)}", file=sys.stderr)
        sys.exit(2 if expected else 3)


def _check_words(words: list[str]) -> None:
    """DataError if the name of an existing file would be read as an option."""
    for word in words[: words.index("--") if "--" in words else None]:
        if word.startswith("-") and len(word) > 1 and os.path.exists(word):
            from scenegpi.errors import DataError

            raise DataError(word, f"a name that begins with a dash is read as an option; write ./{word}")


def _has_folder() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:
        return False


def _behave() -> list[int]:
    """Behaves as a program in a pipe should: quiet when the reader leaves, cleaning up when stopped, replacing
    characters that cannot be printed. Gives the list of signals that asked it to stop, which grows as they come."""
    stops: list[int] = []
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - None where the caller has closed it
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115

    def stop(number: int, _: object) -> None:
        """By an exception, so that half-written files are removed."""
        stops.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell may have said to ignore it
        signal.signal(signal.SIGINT, stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    return stops
