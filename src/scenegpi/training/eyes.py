"""New eyes for a model: its photo network is trained further, on its own photos and another annotation's together.

    RUN/vision/whole/       the training (scenegpi.training.photo_fit); it goes on after a kill
    RUN/model/              the model that the run starts from, graph and all, with the new eyes

Where neither finder nor label head is trained, what was fitted for them stays as it is. Otherwise the chance that a box
shows something and the probabilities of the graph are fitted to the validation photos.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scenegpi.errors import DataError, OptionError
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.models.build import SceneModel, build_model
from scenegpi.models.calibration import fit_calibrations
from scenegpi.models.checkpoint import load_model, round_to_half, save_model
from scenegpi.training.config import TrainConfig
from scenegpi.training.data_split import Images
from scenegpi.training.finder_calibration import fit_finder
from scenegpi.training.folder import FINISHED, MODEL
from scenegpi.training.photo_stage import fit_whole, open_photos
from scenegpi.training.processes import is_first_process, wait_for
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.model import VisionModel

NAMING, FINDING = "backbone.naming.", "backbone.finding."
Photos = Sequence[tuple[Path, SceneGraph]]


def train_eyes(config: TrainConfig, images: Images, folder: Path, progress: bool = False) -> Path:
    """Trains the eyes of the model `config.start`, and gives the folder of the new model."""
    if config.start is None or config.model.vision is None:
        raise OptionError("photo.only: needs a model that uses photos to start from (--start)")
    model = load_model(config.start)
    if model.labels != images.vocabulary or model.vision is None:
        raise DataError(config.start, "is not a photo model of this data set's labels")
    photos, validation = (
        [(path, graph) for path, graph in zip(paths, graphs, strict=True) if path is not None]
        for paths, graphs in ((images.train_photos, images.train), (images.validation_photos, images.validation))
    )
    vision = VisionModel(config.model.vision, images.vocabulary)
    take_over(vision, model.vision)
    paths, graphs = [path for path, _ in photos], [graph for _, graph in photos]
    data = open_photos(vision, paths, graphs, config.photo.other)
    fit_whole(vision, data, config.photo, folder / "vision" / "whole", seed=config.seed, shown=progress, machine=config)
    if not is_first_process():
        wait_for(folder / FINISHED)
        return folder / MODEL
    refit = config.photo.names + config.photo.finder > 0
    finder = fit_finder(vision.eval(), validation) if refit else _finder(vision, model.vision)
    vision.eval().config = replace(vision.config, finder=finder)
    made = build_model(replace(model.config, vision=vision.config), images.vocabulary)
    made.network.load_state_dict(model.network.state_dict())
    made.vision, made.calibration, made.trained_on = vision, model.calibration, model.trained_on
    if config.half:
        round_to_half(made)
    if refit:
        calibrate_graph(made, validation, config)
    record = {
        "preset": config.preset,
        "task": config.task,
        "seed": config.seed,
        "graph": f"of {config.start}",
    }
    save_model(made, folder / MODEL, {}, record, overwrite=True, half=config.half)
    write_json(folder / FINISHED, {"photos": len(photos)})
    return folder / MODEL


def take_over(vision: VisionModel, other: VisionModel) -> None:
    """The weights of other eyes (in place). A second look that they don't have starts anew, in maps like those that
    names are read from.
    """
    found, wanted = other.state_dict(), vision.state_dict()
    if not any(name.startswith(FINDING) for name in found):
        found |= {name.replace(NAMING, FINDING): value for name, value in found.items() if name.startswith(NAMING)}
    for name, value in found.items():
        if name in wanted and wanted[name].shape != value.shape:
            raise OptionError(f"model.vision: {name} is built otherwise in the model that the run starts from")
        if name in wanted:
            wanted[name] = value
    vision.load_state_dict(wanted)


def _finder(vision: VisionModel, other: VisionModel) -> FinderConfig:
    """The settings of a run's finder, with what was fitted for the one that it starts from."""
    mine, theirs = (each.config.finder or FinderConfig() for each in (vision, other))
    return replace(mine, weights=theirs.weights)


def calibrate_graph(model: SceneModel, photos: Photos, config: TrainConfig) -> None:
    """The probabilities of the graph, given what its eyes say of the validation photos (in place)."""
    plain = model.labels_only()
    if plain.vision is None:
        return
    said = [graph.replace(label_dist=plain.vision.label_dist(path, graph)) for path, graph in photos]
    model.calibration = config.calibration or fit_calibrations(plain, said, config.task)
