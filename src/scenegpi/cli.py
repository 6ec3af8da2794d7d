"""The command line: parses, calls, prints. The commands live in `scenegpi.commands` and import what they need late."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from scenegpi import __version__
from scenegpi.commands import data, demo

HELP = """Scene graphs from images, by permutation-invariant structured prediction.

Start with [bold]scenegpi demo[/bold]. Every command has its own [bold]--help[/bold]."""
EXIT_CODES = "Exit codes: 0 fine, 1 defects found, 2 input that can't be used, 3 a fault of this program."

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
app.command("demo")(demo.demo)


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
    """Entry point: runs a command; an error becomes one line and an exit code."""
    try:
        app()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if os.environ.get("SCENEGPI_DEBUG"):
            raise
        from scenegpi.arrays import GraphError
        from scenegpi.data.errors import DataError

        expected = isinstance(error, DataError | GraphError)
        if not expected:
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            print(f"scenegpi: fault in this program: {' '.join(text.split())} (--debug shows where)", file=sys.stderr)
        else:
            print(f"scenegpi: {error}", file=sys.stderr)
        sys.exit(2 if expected else 3)
