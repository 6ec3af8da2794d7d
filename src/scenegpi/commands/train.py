"""`scenegpi train`: trains a model, resumes a run, lists the recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Option

from scenegpi.commands.options import File, Text
from scenegpi.commands.terminal import say
from scenegpi.errors import DataError, OptionError, naming

Number = int | None
Task = Literal["predcls", "sgcls", "both"]
SYSTEMS = "The model: a GPI preset, baseline, or a system it is compared with (motifs, imp, ...); see docs."
OTHER = "Another data set with all objects of its classes annotated (COCO): the photo network learns from it too."
RELATIONS = "More relations in the labels of --data (such as V-COCO's actions), added to its counts."
AGAINST = "A model to compare the new one with at the end, on the test images of --data."


def train(
    out: Annotated[File, Option(help="Folder of the run: its log, its state, its model.")] = None,
    recipe: Annotated[Text, Option(help="Train a model the way a shipped one was trained (see --recipes).")] = None,
    data: Annotated[File, Option(help="A data set of any known format.")] = None,
    preset: Annotated[Text, Option(help=SYSTEMS)] = None,
    config: Annotated[File, Option(help="TOML file with any settings; command-line options override it.")] = None,
    use_photos: Annotated[
        bool, Option("--use-photos", help="Train a model that also predicts labels from photos.")
    ] = False,
    photos: Annotated[Text, Option(help="Folder of photos, if not next to the data; implies --use-photos.")] = None,
    backbone: Annotated[Text, Option(help="The photo network's backbone: hf:FOLDER, from transformers.")] = None,
    other: Annotated[Text, Option(help=OTHER)] = None,
    other_photos: Annotated[Text, Option(help="Folder of the photos of --other.")] = None,
    other_ids: Annotated[Text, Option(help="JSON file: image id -> image id in --other, for photos in both.")] = None,
    relations: Annotated[Text, Option(help=RELATIONS)] = None,
    task: Annotated[Task | None, Option(help="Whether labels are given, predicted too, or both in turn.")] = None,
    limit: Annotated[Number, Option(help="Train on at most this many images.", min=1)] = None,
    validation: Annotated[Number, Option(help="Number of training images to set aside for validation.", min=0)] = None,
    epochs: Annotated[Number, Option(help="Maximum epochs, divided between baseline and context.", min=1)] = None,
    start: Annotated[Text, Option(help="A run or model: use its baseline instead of training one.")] = None,
    words: Annotated[Text, Option(help="Word vectors, instead of those in the package.")] = None,
    distributions: Annotated[Text, Option(help="npz file of another system's distributions.")] = None,
    seed: Annotated[Number, Option(help="Random seed.", min=0)] = None,
    resume: Annotated[bool, Option("--resume", help="Continue the run in OUT.")] = False,
    device: Annotated[Text, Option(help="Where to train: cpu, gpu, cuda, mps or auto.")] = None,
    devices: Annotated[Number, Option(help="Processes per machine.", min=1)] = None,
    precision: Annotated[Text, Option(help="32-true, or bf16-mixed or 16-mixed for autocast.")] = None,
    strategy: Annotated[Text, Option(help="How processes share the work: one of Lightning's ddp strategies.")] = None,
    num_nodes: Annotated[Number, Option(help="Number of machines.", min=1)] = None,
    threads: Annotated[Number, Option(help="CPU threads per process.", min=1)] = None,
    against: Annotated[Text, Option(help=AGAINST)] = None,
    recipes: Annotated[bool, Option("--recipes", help="List the recipes and exit.")] = False,
) -> None:
    """Train a model on a data set. An interrupted or killed run continues with --resume and loses at most one epoch."""
    if recipes:
        _list_recipes()
        return
    if out is None:
        raise DataError("--out", "is required: the folder for this run")
    if against is not None:
        _check_against(against, data, resume)
    if threads:
        import torch

        torch.set_num_threads(threads)
    path = None if data is None else str(data)
    learned = _given(path=other, photos=other_photos, same=other_ids)
    vision = {"features": {"backbone": backbone}} if backbone else {}
    options = _given(
        preset=preset, task=task, seed=seed, start=start, device=device, devices=devices, nodes=num_nodes,
        precision=precision, strategy=strategy, epochs=epochs,
        data=_given(path=path, photos=photos, validation=validation, limit=limit, words=words,
                    more={"path": relations} if relations else None,
                    distributions=distributions) or None,
        model={"vision": vision} if use_photos or photos is not None or backbone else None,
        photo={"other": learned} if learned else None,
    )  # fmt: skip
    model = _finished(out, options, recipe, config, resume)
    if model is not None and against is not None and data is not None:
        _compare(Path(against), model, out.name, data, photos, "sgcls" if task == "sgcls" else "predcls")


def _given(**settings: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in settings.items() if value is not None}


def _finished(out: Path, options: dict[str, Any], recipe: Text, config: Path | None, resume: bool) -> Path | None:
    """Trains, and prints where the model is; its folder, or None in all processes but the first."""
    from scenegpi.models.shipped import vision_settings
    from scenegpi.training.processes import is_first_process

    try:
        model = _resume(out, options, recipe or config) if resume else _train(out, options, recipe, config)
    except KeyboardInterrupt:
        say(f"stopped; continue with: scenegpi train --resume --out {out}", error=True)
        raise typer.Exit(130) from None
    if not is_first_process():
        return None
    say(f"{model}: the model, with its figures in README.md\n{out / 'log.csv'}: one row per epoch")
    if (vision := vision_settings(model)) and not vision.get("finder"):
        say("This model names the boxes that you give with a photo (predict --boxes); it finds no boxes itself.")
        say("`--recipe vg150-photo` trains a photo network that finds them.")
    return model


def _compare(
    against: Path, model: Path, name: str, data: Path, photos: Text, task: Literal["predcls", "sgcls"]
) -> None:
    from scenegpi.commands.compare import figures

    folder = None if photos is None else Path(photos)
    for line in figures((against, model), (against.name, name), data, "test", folder, task):
        say(line)


def _check_against(against: str, data: Path | None, resume: bool) -> None:
    """Checks, before hours of training, that the model exists, and test images whose names it knows."""
    from scenegpi.data import open_dataset
    from scenegpi.models.shipped import model_vocabulary
    from scenegpi.prediction.annotated import aligned

    vocabulary = model_vocabulary(against)
    if data is None or resume:
        raise DataError("--against", "needs --data (after --resume use: scenegpi compare)")
    for _ in aligned(open_dataset(data, "test"), vocabulary):  # DataError on a name that the model does not know
        pass


def _train(out: Path, options: dict[str, Any], recipe: Text, config: Path | None) -> Path:
    from scenegpi.training.recipes import find_recipe, read_config
    from scenegpi.training.run import train

    if recipe is not None and config is not None:
        raise DataError("options", "give either --recipe or --config")
    file = config if recipe is None else find_recipe(recipe)
    settings = read_config(file, options)
    with naming(file or "options", OptionError):
        return train(settings, out, progress=True)


def _resume(out: Path, options: dict[str, Any], file: Any) -> Path:
    from scenegpi.training.run import resume

    if given := sorted({*options, *(["recipe or config"] if file is not None else [])}):
        raise DataError(out, f"--resume continues with the run's own settings; leave out {', '.join(given)}")
    return resume(out, progress=True)


def _list_recipes() -> None:
    from scenegpi.training.recipes import recipe_titles

    for name, title in recipe_titles().items():
        say(f"{name}: {title}")
