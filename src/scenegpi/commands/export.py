"""`scenegpi export`: a model as one ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from scenegpi.commands.terminal import say


def export(
    model: Annotated[str, Argument(help="A shipped model or a folder.")],
    out: Annotated[Path, Option(help="File to write.")] = Path("model.onnx"),
    photo: Annotated[bool, Option("--photo", help="The model takes a photo and boxes.")] = False,
    find: Annotated[bool, Option("--find", help="The model takes a photo and finds the boxes.")] = False,
    force: Annotated[bool, Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a model as one self-contained ONNX file (extra \\[onnx]).

    By default it reads boxes, image sizes and label distributions and gives distributions of labels and pairs; see
    docs/onnx.md. [bold]scenegpi predict --model model.onnx[/bold] runs such a file without torch.
    """
    from scenegpi.errors import OptionError

    if photo and find:
        raise OptionError("give one of --photo and --find")
    from scenegpi.onnx.export import export_model
    from scenegpi.onnx.program import OPSET
    from scenegpi.onnx.session import Form

    form: Form = "photo" if photo else "find" if find else "layout"
    say(f"exporting {model}: this takes some seconds")
    export_model(model, out, form, overwrite=force)
    say(f"wrote {out}: {out.stat().st_size / 1e6:.1f} MB, opset {OPSET}")
