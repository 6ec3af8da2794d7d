"""`scenegpi models`: what ships in the package, with its figures; or what is in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

MAX_CARD = 1 << 20


def models(
    source: Annotated[str | None, typer.Argument(help="A shipped name or a folder; its card is shown.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the models that ship in the package, with their figures."""
    from json import dumps

    from scenegpi.models.shipped import shipped_models

    if source is not None:
        from rich.console import Console
        from rich.markdown import Markdown

        from scenegpi.models.shipped import find_model

        folder = find_model(source)
        if json:
            print(dumps(_metrics(folder), indent=1, ensure_ascii=False))
            return
        Console().print(Markdown(_card(folder)))
        return
    found = {name: _metrics(folder) for name, folder in shipped_models().items()}
    if json:
        print(dumps(found, indent=1, ensure_ascii=False))
    elif not found:
        print("no models ship in this package; `scenegpi train` makes one")
    else:
        _table(found)


def _table(found: dict[str, dict[str, Any]]) -> None:
    from rich.console import Console
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
            table.add_row(name if k == 0 else "", scored, str(entry.get("images", "")), *shown)
            protocols.append(str(entry.get("protocol", "")))
        if not recalls:
            table.add_row(name, "not scored", "", "", "", "")
    console = Console()
    console.print(table)
    for protocol in dict.fromkeys(filter(None, protocols)):
        console.print(protocol, style="dim")
    console.print('load_model("NAME") loads one; `scenegpi models NAME` shows its card', style="dim")


def _metrics(folder: Path) -> dict[str, Any]:
    from scenegpi.files import read_object

    return read_object(folder / "metrics.json")


def _card(folder: Path) -> str:
    from scenegpi.errors import DataError
    from scenegpi.files import check_file

    check_file(folder / "README.md", MAX_CARD)
    try:
        return (folder / "README.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(folder / "README.md", f"cannot be read ({type(error).__name__})") from None
