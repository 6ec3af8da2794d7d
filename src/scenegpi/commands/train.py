"""`scenegpi train`: thin; torch and Lightning are imported when the command runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from scenegpi.training.config import TrainConfig

Text = str | None
Number = int | None


def train(
    out: Annotated[Path, typer.Option(help="Folder of the run: its log, its state, its best model.")],
    data: Annotated[Path | None, typer.Option(help="A data set of any known format.", show_default=False)] = None,
    preset: Annotated[
        Text,
        typer.Option(
            help="baseline, gpi-no-attention, gpi-neighbour-attention, gpi-feature-attention or gpi-linguistic.",
            show_default=False,
        ),
    ] = None,
    stage: Annotated[
        Text,
        typer.Option(
            help="vision (labels from photos), graph (relations from what they show) or both; without it no pixels.",
            show_default=False,
        ),
    ] = None,
    photos: Annotated[
        Text, typer.Option(help="Folder of the photos, where it is not beside the data.", show_default=False)
    ] = None,
    task: Annotated[Text, typer.Option(help="predcls, sgcls or both.", show_default=False)] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file for every setting; options here go before it.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in OUT.")] = False,
    validation: Annotated[
        Number, typer.Option(help="So many training images are set aside to validate.", min=0, show_default=False)
    ] = None,
    start: Annotated[
        Text, typer.Option(help="A model whose baseline is taken over instead of trained first.", show_default=False)
    ] = None,
    words: Annotated[Text, typer.Option(help="Word vectors, for gpi-linguistic.", show_default=False)] = None,
    distributions: Annotated[
        Text, typer.Option(help="npz file of another system's distributions.", show_default=False)
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="SGCls from simulated label distributions.")] = False,
    epochs: Annotated[Number, typer.Option(help="The most epochs.", min=1, show_default=False)] = None,
    seed: Annotated[Number, typer.Option(help="Of everything random.", min=0, show_default=False)] = None,
    device: Annotated[Text, typer.Option(help="cpu, gpu, cuda, mps or auto.", show_default=False)] = None,
    devices: Annotated[Number, typer.Option(help="Processes that train together.", min=1, show_default=False)] = None,
    num_nodes: Annotated[Number, typer.Option(help="Machines that do.", min=1, show_default=False)] = None,
    threads: Annotated[Number, typer.Option(help="CPU threads a process.", min=1, show_default=False)] = None,
) -> None:
    """Train a model on a data set. Interrupted, even killed, it goes on with --resume and loses one epoch at most."""
    options: dict[str, Any] = {
        "preset": preset,
        "task": task,
        "stage": stage,
        "seed": seed,
        "start": start,
        "device": device,
        "devices": devices,
        "nodes": num_nodes,
        "data": {
            "path": None if data is None else str(data),
            "photos": photos,
            "validation": validation,
            "words": words,
            "distributions": distributions,
        },
        "optim": {"epochs": epochs},
        "simulate": {} if simulate else None,
    }
    if threads:
        import torch

        torch.set_num_threads(threads)
    settings = _resumed(out, options) if resume else _settings(config, _given(options))

    from scenegpi.errors import DataError, OptionError
    from scenegpi.training.run import is_first_process
    from scenegpi.training.run import train as run

    try:
        model = run(settings, out, resume=resume, progress=sys.stderr.isatty())
    except OptionError as error:
        raise DataError(config or "options", str(error)) from None
    except KeyboardInterrupt:
        print(f"stopped; go on with: scenegpi train --resume --out {out}", file=sys.stderr)
        raise typer.Exit(130) from None
    if is_first_process() and settings.stage == "vision":
        print(f"{model}: the label predictor; go on with: scenegpi train --stage graph ... --out {out}")
    elif is_first_process():
        print(f"{model}: the best model, with its figures in README.md\n{out / 'log.csv'}: one row an epoch")


def _settings(file: Path | None, options: dict[str, Any]) -> TrainConfig:
    from scenegpi.errors import DataError, OptionError
    from scenegpi.training.config import read_toml, train_config

    values = {} if file is None else read_toml(file)
    if file is not None:
        try:
            train_config(values)  # so that what is wrong in the file is said with its name
        except OptionError as error:
            raise DataError(file, str(error)) from None
    for key, value in options.items():
        values[key] = {**values.get(key, {}), **value} if isinstance(value, dict) else value
    try:
        return train_config(values)
    except OptionError as error:
        raise DataError("options", str(error)) from None


def _resumed(out: Path, options: dict[str, Any]) -> TrainConfig:
    from scenegpi.errors import DataError
    from scenegpi.training.run import read_run

    given = sorted({*_given(options)} - {"simulate"})
    if given:
        raise DataError(out, f"--resume goes on with the run's own settings; leave out {', '.join(given)}")
    return read_run(out)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Without what was not given; an empty table stays where it stands for a switch."""
    found: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, dict) and value:
            value = {name: each for name, each in value.items() if each is not None} or None
        if value is not None:
            found[key] = value
    return found
