"""Runs a model, or reads a file of predictions, and scores it against a data set."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.data import open_dataset
from scenegpi.data.dataset import Dataset
from scenegpi.errors import DataError, GraphError, MetricError, naming
from scenegpi.graph import SceneGraph
from scenegpi.metrics.alignment import Alignment
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.result import Result
from scenegpi.metrics.state import Plan, RecallState
from scenegpi.metrics.zero_shot import ZeroShot, predicate_groups
from scenegpi.prediction import Item, PredictOptions, Predictor, aligned, scored_pairs
from scenegpi.prediction.annotated import answers
from scenegpi.prediction.inputs import resized
from scenegpi.prediction.model import Model, open_model
from scenegpi.progress import watched
from scenegpi.vision.detect import Detector
from scenegpi.vocabulary import Vocabulary

Pairs = Iterator[tuple[SceneGraph, SceneGraph]]
LOW = 0.01
"""The minimum chance of a box in SGDet."""


def evaluate_file(
    predictions: str | Path,
    protocol: Protocol,
    *,
    data: str | Path | None = None,
    split: str | None = None,
    train: str | Path | None = None,
    allow_missing: bool = False,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Result:
    """Score a file of predictions; DataError that names file, image and field if that can't be done.

    Args:
        predictions: an npz file that holds the ground truth too (`scenegpi.data.evaluation_npz`), or JSON lines.
        protocol: how to score.
        data: the ground truth, anything that `open_dataset` opens. Images are matched by id, or by file name.
        split: of `data`.
        train: the training data: its "train" split (or all of it) defines zero-shot, and head, body and tail.
        allow_missing: images of `data` that have no prediction count as images without predictions.
        bootstrap, seed: of the intervals.
    """
    predictions = Path(predictions)
    options: dict[str, Any] = {"bootstrap": bootstrap, "seed": seed}
    if predictions.suffix.lower() == ".npz":
        if data is not None or split is not None or train is not None:
            raise DataError(predictions, "an npz file has its own ground truth; leave out --data, --split and --train")
        from scenegpi.data.evaluation_npz import EvaluationNpz

        file = EvaluationNpz(predictions, protocol.task)
        if file.zero_shot is not None:
            options["zero_shot"] = ZeroShot.unseen(file.zero_shot)
        pairs: Pairs = ((file.prediction(i), file.target(i)) for i in range(len(file)))
        return _scored(Plan(protocol, file.vocabulary, **options), pairs, len(file), predictions)
    if data is None:
        raise DataError(predictions, "the ground truth is missing: give it with --data (or use an npz file)")
    truth = open_dataset(data, split)
    found = open_dataset(predictions, vocabulary=truth.vocabulary, strict=True, trust=True)
    if train is not None:
        options |= _training(train, truth.vocabulary)
    pairs = matched(found, truth, allow_missing)
    return _scored(Plan(protocol, truth.vocabulary, **options), pairs, len(truth), predictions)


def evaluate_model(
    model: Model | str | Path,
    protocol: Protocol,
    *,
    data: str | Path | None,
    split: str | None = None,
    train: str | Path | None = None,
    photos: str | Path | None = None,
    limit: int = 0,
    informative: float = 0.0,
    finder: Detector | str | None = None,
    device: str = "cpu",
    bootstrap: int = 1000,
    seed: int = 0,
) -> Result:
    """Run a model (a shipped name, a folder or a loaded one) on a data set and score it, in the model's vocabulary.

    Args:
        photos: the folder of the photos, for a model that uses them, and for SGDet.
        limit: number of images, the first ones; 0 for all.
        informative: as in `PredictOptions`.
        finder: the detector in SGDet; by default the model's own, or that of the shipped photo model.

    The other arguments are as for a file. If the model was trained on some of the images, the first note says so.
    """
    if data is None:
        raise DataError(str(model), "a model needs images: give a data set with --data")
    options = PredictOptions.scoring(protocol.task, informative)
    predictor = Predictor(open_model(model, device=device).labels_only(), finder, options, device)
    if protocol.task == "sgdet":
        predictor = Predictor(predictor.model, every_candidate(predictor.finder), options, device)
    truth = open_dataset(data, split, images=photos)
    truth = truth[:limit] if limit else truth
    vocabulary = predictor.model.vocabulary
    groups = _training(train, vocabulary) if train is not None else {}
    plan = Plan(protocol, vocabulary, bootstrap=bootstrap, seed=seed, **groups)
    pairs = found_pairs(predictor, truth) if protocol.task == "sgdet" else scored_pairs(predictor, truth)
    fingerprint, known = predictor.model.trained_on, 0

    def counted() -> Pairs:
        nonlocal known
        for found, target in pairs:
            known += fingerprint is not None and fingerprint.seen(target)
            yield found, target

    result = _scored(plan, counted(), len(truth), data)
    if informative:
        result.notes.append(f"Predicates weighted by their training frequency to the power -{informative:g}.")
    if known:
        result.notes.insert(0, trained_on_note(known, len(truth)))
    return result


def _scored(plan: Plan, pairs: Pairs, total: int, where: str | Path) -> Result:
    """The figures of (prediction, truth) pairs; DataError that starts with `where` if they cannot be scored."""
    state = RecallState(plan)
    with naming(where, MetricError, GraphError):
        state.stream(watched(pairs, "scoring", total))
    return state.result()


def every_candidate(finder: Detector) -> Detector:
    """Our finder, alone or combined with another, reporting unlikely boxes too: recall at K counts K relations."""
    from scenegpi.vision.combine import Combined
    from scenegpi.vision.find import Finder

    if not isinstance(finder, Finder | Combined):
        return finder
    every = copy(finder)
    every.config = replace(finder.config, floor=LOW, named_floor=0.0, same_label=1.0)
    return every


def found_pairs(predictor: Predictor, dataset: Dataset) -> Pairs:
    """(prediction, truth) of every image, from its photo alone (SGDet), in the data set's order.

    Boxes are found in pixels of the photo, which may have another size than the annotated image: they are scaled to it.
    """

    def items() -> Iterator[Item]:
        for truth in aligned(dataset, predictor.model.vocabulary):
            photo = dataset.photo_path(truth)
            if photo is None:
                raise DataError(dataset.path, f"image {truth.key}: no photo; sgdet needs the photos (--photos FOLDER)")
            yield Item(photo, data=truth)

    for graph, truth in answers(predictor, items()):
        yield resized(graph, truth.width, truth.height), truth


def trained_on_note(known: int, images: int) -> str:
    """The warning for a model that is scored on its own training images."""
    return (
        f"SCORED ON ITS OWN TRAINING IMAGES: {known:,} of {images:,}. "
        "These figures do not show how well the model does on new images."
    )


def _training(train: str | Path, vocabulary: Vocabulary) -> dict[str, Any]:
    """Zero-shot triplets and predicate groups from the training data."""
    graphs = open_dataset(train)
    if (graphs.split_codes() == 0).any():
        graphs = graphs.split("train")
    align = Alignment(vocabulary)
    counts = np.zeros(len(vocabulary.predicates), dtype=np.int64)

    def counted() -> Iterator[SceneGraph]:
        for graph in map(align, graphs):
            np.add.at(counts, graph.relations[:, 2], 1)
            yield graph

    zero_shot = ZeroShot.from_training(counted())
    return {"zero_shot": zero_shot, "groups": predicate_groups(counts)}


def matched(found: Dataset, truth: Dataset, allow_missing: bool) -> Pairs:
    """Each prediction, in pixels of its ground truth, and that, by image id or file name; every image exactly once."""
    place: dict[str, int] = {}
    for i, graph in enumerate(truth):
        for name in _names(graph):
            if place.setdefault(name, i) != i:
                raise DataError(truth.path, f"two images are named {name!r:.60}")
    align = Alignment(truth.vocabulary)
    seen: set[int] = set()
    for graph in found:
        names = _names(graph)
        if not names:
            raise MetricError("a prediction without image id or file name")
        i = next((place[name] for name in names if name in place), -1)
        if i < 0:
            raise MetricError(f"image {names[0]!r:.60} is not in {truth.path} ({len(truth):,} images)")
        if i in seen:
            raise MetricError(f"image {names[0]!r:.60} is predicted twice")
        seen.add(i)
        target = truth[i]
        try:
            yield resized(align(graph), target.width, target.height), target
        except MetricError as error:
            raise MetricError(f"image {names[0]!r:.60}: {error}") from None
    missing = [i for i in range(len(truth)) if i not in seen]
    if missing and not allow_missing:
        raise MetricError(
            f"no prediction for {len(missing):,} of {len(truth):,} images, the first is image "
            f"{_names(truth[missing[0]])[0]!r:.60} (--allow-missing counts them as images without predictions)"
        )
    for i in missing:
        yield truth[i].subset([]), truth[i]


def _names(graph: SceneGraph) -> list[str]:
    return [str(name) for name in (graph.image_id, graph.file) if name is not None]
