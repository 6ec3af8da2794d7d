"""Options that several commands share: one name, one meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

Text = str | None
File = Path | None
Photos = Annotated[File, Option(help="Folder of the photos, if they are not next to the data.")]
Split = Annotated[Text, Option(help="Only this split of the data: train, val or test.")]
Format = Annotated[Text, Option(help="Format of the data, if it is not clear from the path.")]
Model = Annotated[Text, Option(help="A shipped model or a folder.")]
Device = Annotated[str, Option(help="Where the model runs: cpu, cuda, ...")]
PrintJson = Annotated[bool, Option("--json", help="Print JSON instead of tables.")]
