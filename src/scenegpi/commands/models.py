"""`scenegpi models`: what ships in the package, with its figures; or what is in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from scenegpi.commands.terminal import make_console, say, say_json
from scenegpi.errors import printable

MAX_CARD = 1 << 20
TASK_NAMES = {"predcls": "PredCls", "sgcls": "SGCls", "sgdet": "SGDet"}
PURPOSES = {
    "vg150-photo": "Your photo: finds boxes, names and relates them.",
    "vg150-layout": "Boxes and labels of any detector: relates them.",
    "vrd-photo": "A photo and boxes, in VRD's words. Research only.",
    "vrd-layout": "Boxes and labels, in VRD's words. Research only.",
}


def models(
    source: Annotated[str | None, Argument(help="A shipped name or a folder; its card is shown.")] = None,
    json: Annotated[bool, Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the models that ship in the package: what each is for, and its figures."""
    from scenegpi.models.shipped import shipped_models

    if source is not None:
        from rich.markdown import Markdown

        from scenegpi.files import read_text
        from scenegpi.models.shipped import find_model

        folder = find_model(source)
        if json:
            say_json(_metrics(folder))
        else:
            card = read_text(folder / "README.md", MAX_CARD)
            make_console().print(Markdown("\n".join(map(printable, card.splitlines()))))
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

    table = Table("model", "for", "R@50", title="models in this package", title_justify="left", show_lines=True)
    for name in sorted(found, key=[*PURPOSES, *found].index):
        rows = [
            f"{100 * entry['figures']['R@50']:.1f} {_task(entry)}, {printable(scored)}, {entry['images']:,} images"
            for scored, entry in found[name].items()
            if "R@50" in entry.get("figures", {})
        ]
        table.add_row(name, PURPOSES.get(name, ""), "\n".join(rows) or "not scored")
    console = make_console()
    console.print(table)
    console.print("PredCls: boxes and labels are given; SGCls: boxes are given; graph constraint.", style="dim")
    console.print("`scenegpi models NAME` shows all figures of a model with their protocol.", style="dim")


def _task(entry: dict[str, Any]) -> str:
    start = str(entry.get("protocol", "")).lower()
    return next((name for key, name in TASK_NAMES.items() if start.startswith(key)), "")


def _metrics(folder: Path) -> dict[str, Any]:
    from scenegpi.files import read_figures

    return read_figures(folder / "metrics.json")
