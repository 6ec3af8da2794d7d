"""`scenegpi train`: thin; torch and Lightning are imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from scenegpi.commands.terminal import say

Text = str | None
Number = int | None


def train(
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run: its log, its state, its model.", show_default=False)
    ] = None,
    recipe: Annotated[
        Text, typer.Option(help="Make a model as those that ship were made (see --recipes).", show_default=False)
    ] = None,
    data: Annotated[Path | None, typer.Option(help="A data set of any known format.", show_default=False)] = None,
    preset: Annotated[
        Text,
        typer.Option(
            help="The model: a GPI preset, baseline, or a system it is compared with (motifs, imp, ...); see docs.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with any settings; options on the command line override it.")
    ] = None,
    use_photos: Annotated[
        bool, typer.Option("--use-photos", help="Train a model that finds labels in photos, too.")
    ] = False,
    photos: Annotated[
        Text, typer.Option(help="Folder of photos, if not beside the data; implies --use-photos.", show_default=False)
    ] = None,
    backbone: Annotated[
        Text,
        typer.Option(help="Of a photo network: hf:FOLDER, a checkpoint of transformers.", show_default=False),
    ] = None,
    other: Annotated[
        Text,
        typer.Option(
            help="Another annotation, complete for its own labels (COCO), that a photo network learns from as well.",
            show_default=False,
        ),
    ] = None,
    other_photos: Annotated[Text, typer.Option(help="Folder of its photos.", show_default=False)] = None,
    other_ids: Annotated[
        Text,
        typer.Option(help="JSON file: image id -> image id there, of photos that both have.", show_default=False),
    ] = None,
    task: Annotated[Text, typer.Option(help="predcls, sgcls or both.", show_default=False)] = None,
    limit: Annotated[Number, typer.Option(help="Train on at most this many images.", min=1, show_default=False)] = None,
    validation: Annotated[
        Number, typer.Option(help="Number of training images to set aside for validation.", min=0, show_default=False)
    ] = None,
    epochs: Annotated[
        Number, typer.Option(help="Most epochs, divided between baseline and context.", min=1, show_default=False)
    ] = None,
    start: Annotated[
        Text, typer.Option(help="A run or model whose baseline is taken over instead of trained.", show_default=False)
    ] = None,
    words: Annotated[
        Text,
        typer.Option(help="Word vectors, instead of those in the package.", show_default=False),
    ] = None,
    distributions: Annotated[
        Text, typer.Option(help="npz file of another system's distributions.", show_default=False)
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="SGCls from simulated label distributions.")] = False,
    seed: Annotated[Number, typer.Option(help="Random seed.", min=0, show_default=False)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in OUT.")] = False,
    device: Annotated[
        Text, typer.Option(help="Where to train: cpu, gpu, cuda, mps or auto.", show_default=False)
    ] = None,
    devices: Annotated[Number, typer.Option(help="Processes per machine.", min=1, show_default=False)] = None,
    precision: Annotated[
        Text, typer.Option(help="32-true, or bf16-mixed or 16-mixed for autocast.", show_default=False)
    ] = None,
    strategy: Annotated[
        Text, typer.Option(help="How processes share the work: one of Lightning's ddp strategies.", show_default=False)
    ] = None,
    num_nodes: Annotated[Number, typer.Option(help="Number of machines.", min=1, show_default=False)] = None,
    threads: Annotated[Number, typer.Option(help="CPU threads per process.", min=1, show_default=False)] = None,
    against: Annotated[
        Text,
        typer.Option(help="A model: say at the end how much better the new one is on the test images of --data."),
    ] = None,
    recipes: Annotated[bool, typer.Option("--recipes", help="List the recipes and exit.")] = False,
) -> None:
    """Train a model on a data set. Interrupted, even killed, it resumes with --resume and loses at most one epoch."""
    from scenegpi.errors import DataError

    if recipes:
        _list_recipes()
        return
    if out is None:
        raise DataError("--out", "is required: the folder for this run")
    if against is not None:
        _check_against(against, data, resume)
    options: dict[str, Any] = {
        "preset": preset,
        "task": task,
        "seed": seed,
        "start": start,
        "device": device,
        "devices": devices,
        "nodes": num_nodes,
        "precision": precision,
        "strategy": strategy,
        "epochs": epochs,
        "data": {
            "path": None if data is None else str(data),
            "photos": photos,
            "validation": validation,
            "limit": limit,
            "words": words,
            "distributions": distributions,
        },
        "model": {"vision": {"features": {"backbone": backbone}} if backbone else {}}
        if use_photos or photos is not None or backbone
        else {},
        "simulate": {} if simulate else None,
    }
    more = {"path": other, "photos": other_photos, "same": other_ids}
    if more := {key: value for key, value in more.items() if value is not None}:
        options["photo"] = {"other": more}
    options["data"] = {key: value for key, value in options["data"].items() if value is not None}
    options = {key: value for key, value in options.items() if value is not None and (value != {} or key == "simulate")}
    if threads:
        import torch

        torch.set_num_threads(threads)
    try:
        model = _resume(out, options, recipe or config) if resume else _train(out, options, recipe, config)
    except KeyboardInterrupt:
        say(f"stopped; go on with: scenegpi train --resume --out {out}", error=True)
        raise typer.Exit(130) from None
    from scenegpi.models.shipped import vision_settings
    from scenegpi.training.processes import is_first_process

    if is_first_process():
        say(f"{model}: the model, with its figures in README.md\n{out / 'log.csv'}: one row per epoch")
        if (vision := vision_settings(model)) and not vision.get("finder"):
            say("It names boxes that are given with a photo (predict --boxes) and finds none of its labels by itself;")
            say("`--recipe vg150-photo` trains a photo network that does.")
        if against is not None and data is not None:
            from scenegpi.commands.compare import figures

            paths, names = (Path(against), model), (Path(against).name, out.name)
            place = None if photos is None else Path(photos)
            for line in figures(paths, names, data, "test", place, "sgcls" if task == "sgcls" else "predcls"):
                say(line)


def _check_against(against: str, data: Path | None, resume: bool) -> None:
    """Before hours of training: the model is there, and images to compare on, whose names it knows."""
    from scenegpi.data import open_dataset
    from scenegpi.errors import DataError
    from scenegpi.models.shipped import model_vocabulary
    from scenegpi.prediction.annotated import aligned

    vocabulary = model_vocabulary(against)
    if data is None or resume:
        raise DataError("--against", "needs --data (after --resume use: scenegpi compare)")
    for _ in aligned(open_dataset(data, "test"), vocabulary):  # DataError on a name that it does not know
        pass


def _train(out: Path, options: dict[str, Any], recipe: str | None, config: Path | None) -> Path:
    from scenegpi.errors import DataError, OptionError
    from scenegpi.training.recipes import find_recipe, read_config
    from scenegpi.training.run import train

    if recipe is not None and config is not None:
        raise DataError("options", "--recipe and --config: give one of them")
    file = config if recipe is None else find_recipe(recipe)
    settings = read_config(file, options)
    try:
        return train(settings, out, progress=True)
    except OptionError as error:
        raise DataError(file or "options", str(error)) from None


def _resume(out: Path, options: dict[str, Any], file: Any) -> Path:
    from scenegpi.errors import DataError
    from scenegpi.training.run import resume

    given = sorted({*options, *(["recipe or config"] if file is not None else [])})
    if given:
        raise DataError(out, f"--resume goes on with the run's own settings; leave out {', '.join(given)}")
    return resume(out, progress=True)


def _list_recipes() -> None:
    from scenegpi.training.recipes import recipe_titles

    for name, title in recipe_titles().items():
        say(f"{name}: {title}")
