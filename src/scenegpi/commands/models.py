"""`scenegpi models`: what ships in the package, with its figures. `scenegpi export`: a model as one ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from scenegpi.commands.options import PrintJson
from scenegpi.commands.terminal import make_console, say, say_json
from scenegpi.errors import OptionError, printable
from scenegpi.files import read_figures, read_text

MAX_CARD = 1 << 20
TASK_NAMES = {"predcls": "PredCls", "sgcls": "SGCls", "sgdet": "SGDet"}
PURPOSES = {
    "vg150-photo": "Your photo: finds boxes, names and relates them.",
    "vg150-layout": "Boxes and labels of any detector: relates them.",
    "vrd-photo": "A photo and boxes, in VRD's words. Research only.",
    "vrd-layout": "Boxes and labels, in VRD's words. Research only.",
}


def models(
    source: Annotated[str | None, Argument(help="A shipped model or a folder: show its card.")] = None,
    json: PrintJson = False,
) -> None:
    """List the models that ship in the package: what each is for, and its figures."""
    from scenegpi.models.shipped import find_model, shipped_models

    if source is not None:
        from rich.markdown import Markdown

        folder = find_model(source)
        if json:
            say_json(read_figures(folder / "metrics.json"))
        else:
            card = read_text(folder / "README.md", MAX_CARD)
            make_console().print(Markdown("\n".join(map(printable, card.splitlines()))))
        return
    found = {name: read_figures(folder / "metrics.json") for name, folder in shipped_models().items()}
    if json:
        say_json(found)
    elif not found:
        say("no models ship in this package; `scenegpi train` makes one")
    else:
        _table(found)


def export(
    model: Annotated[str, Argument(help="A shipped model or a folder.")],
    out: Annotated[Path, Option(help="File to write.")] = Path("model.onnx"),
    photo: Annotated[bool, Option("--photo", help="The model takes a photo and boxes.")] = False,
    find: Annotated[bool, Option("--find", help="The model takes a photo and finds the boxes.")] = False,
    force: Annotated[bool, Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a model as one self-contained ONNX file (extra \\[onnx]).

    By default it takes boxes, image sizes and label distributions, and gives distributions of labels and pairs; see
    docs/onnx.md. [bold]scenegpi predict --model model.onnx[/bold] runs such a file without torch.
    """
    if photo and find:
        raise OptionError("give either --photo or --find")
    from scenegpi.onnx.export import export_model
    from scenegpi.onnx.program import OPSET
    from scenegpi.onnx.session import Form

    form: Form = "photo" if photo else "find" if find else "layout"
    say(f"exporting {model}: this takes a few seconds")
    export_model(model, out, form, overwrite=force)
    say(f"wrote {out}: {out.stat().st_size / 1e6:.1f} MB, opset {OPSET}")


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
