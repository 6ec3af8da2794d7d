"""`scenegpi models`: what ships in the package, with its figures; or what is in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from scenegpi.commands.terminal import make_console, say, say_json
from scenegpi.errors import printable

MAX_CARD = 1 << 20


def models(
    source: Annotated[str | None, typer.Argument(help="A shipped name or a folder; its card is shown.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the models that ship in the package, with their figures."""

    from scenegpi.models.shipped import shipped_models

    if source is not None:
        from rich.markdown import Markdown

        from scenegpi.models.shipped import find_model

        folder = find_model(source)
        if json:
            say_json(_metrics(folder))
            return
        make_console().print(Markdown("\n".join(map(printable, _card(folder).splitlines()))))
        return
    found = {name: _metrics(folder) for name, folder in shipped_models().items()}
    if json:
        say_json(found)
    elif not found:
        say("no models ship in this package; `scenegpi train` makes one")
    else:
        _table(found)


def _table(found: dict[str, dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(title="models in this package", title_justify="left")
    for name in ("model", "scored on", "images", "R@20", "R@50", "R@100"):
        table.add_column(name, justify="left" if name in ("model", "scored on") else "right")
    protocols = []
    for name, metrics in found.items():
        recalls = {scored: entry for scored, entry in metrics.items() if "R@50" in entry.get("figures", {})}
        for k, (scored, entry) in enumerate(recalls.items()):
            figures = entry["figures"]
            shown = [f"{100 * figures[key]:.1f}" if key in figures else "" for key in ("R@20", "R@50", "R@100")]
            table.add_row(name if k == 0 else "", printable(scored), printable(entry.get("images", "")), *shown)
            protocols.append(printable(entry.get("protocol", "")))
        if not recalls:
            table.add_row(name, "not scored", "", "", "", "")
    console = make_console()
    console.print(table)
    for protocol in dict.fromkeys(filter(None, protocols)):
        console.print(protocol, style="dim")
    console.print('load_model("NAME") loads one; `scenegpi models NAME` shows its card', style="dim")


def _metrics(folder: Path) -> dict[str, Any]:
    from scenegpi.files import read_figures

    return read_figures(folder / "metrics.json")


def _card(folder: Path) -> str:
    from scenegpi.files import read_text

    return read_text(folder / "README.md", MAX_CARD)
