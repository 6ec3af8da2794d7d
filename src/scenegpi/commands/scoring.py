"""Predictions beside their ground truth, from files or from a model: what `eval` scores and `report` shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenegpi.errors import MetricError
from scenegpi.metrics.protocol import Protocol

if TYPE_CHECKING:
    from scenegpi.data import Dataset
    from scenegpi.graph import SceneGraph
    from scenegpi.metrics.result import Result
    from scenegpi.vocabulary import Vocabulary

Pairs = Iterator[tuple["SceneGraph", "SceneGraph"]]


def evaluate_file(
    predictions: Path,
    protocol: Protocol,
    *,
    data: Path | None = None,
    split: str | None = None,
    train: Path | None = None,
    allow_missing: bool = False,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Result:
    """Score a file of predictions; DataError, one line that names file, image and field, if that can't be done.

    Args:
        predictions: an npz file that holds the ground truth too (`scenegpi.data.evaluation_npz`), or JSON lines.
        protocol: how to score.
        data: the ground truth, anything that `open_dataset` opens. Images are matched by id, or by file name.
        split: of `data`.
        train: the training data, whose "train" split (or all of it) tells what is zero-shot, and head, body and tail.
        allow_missing: images of `data` that have no prediction count as images without predictions.
        bootstrap, seed: of the intervals.
    """
    from scenegpi.data import DataError, open_dataset
    from scenegpi.metrics.state import Plan, RecallState

    options: dict[str, Any] = {"bootstrap": bootstrap, "seed": seed}
    if predictions.suffix.lower() == ".npz":
        if data is not None or split is not None or train is not None:
            raise DataError(predictions, "an npz file has its own ground truth; leave out --data, --split and --train")
        from scenegpi.data.evaluation_npz import EvaluationNpz
        from scenegpi.metrics.zero_shot import ZeroShot

        file = EvaluationNpz(predictions, protocol.task)
        if file.zero_shot is not None:
            options["zero_shot"] = ZeroShot.unseen(file.zero_shot)
        state = RecallState(Plan(protocol, file.vocabulary, **options))
        pairs: Pairs = ((file.prediction(i), file.target(i)) for i in range(len(file)))
        total = len(file)
    else:
        if data is None:
            raise DataError(predictions, "the ground truth is missing: give it with --data (or use an npz file)")
        truth = open_dataset(data, split)
        found = open_dataset(predictions, vocabulary=truth.vocabulary, strict=True, trust=True)
        if train is not None:
            options |= _training(train, truth.vocabulary)
        state = RecallState(Plan(protocol, truth.vocabulary, **options))
        pairs = matched(found, truth, allow_missing)
        total = len(truth)
    try:
        state.stream(_shown(pairs, total))
    except MetricError as error:
        raise DataError(predictions, str(error)) from None
    return state.result()


def evaluate_model(
    source: str,
    protocol: Protocol,
    *,
    data: Path | None,
    split: str | None = None,
    train: Path | None = None,
    photos: Path | None = None,
    limit: int = 0,
    informative: float = 0.0,
    device: str = "cpu",
    bootstrap: int = 1000,
    seed: int = 0,
) -> Result:
    """Run a model (a folder or a shipped name) on a data set and score it, in the model's vocabulary.

    `photos` is a folder of photos, `limit` a number of images, the first ones, `informative` as in
    `PredictOptions`; the other arguments are as for a file.
    Where the model was trained on some of the images, the result's first note says so.
    """
    from scenegpi.data import DataError, open_dataset
    from scenegpi.errors import GraphError
    from scenegpi.metrics.state import Plan, RecallState
    from scenegpi.prediction import PredictOptions, Predictor, scored_pairs

    if data is None:
        raise DataError(source, "a model needs images: give a data set with --data")
    if protocol.task == "sgdet":
        raise DataError(source, "task sgdet: a model needs boxes, it does not find them; use predcls or sgcls")
    predictor = Predictor(source, options=PredictOptions.scoring(protocol.task, informative), device=device)
    truth = open_dataset(data, split, images=photos)
    truth = truth[:limit] if limit else truth
    vocabulary = predictor.model.vocabulary
    options = _training(train, vocabulary) if train is not None else {}
    state = RecallState(Plan(protocol, vocabulary, bootstrap=bootstrap, seed=seed, **options))
    fingerprint, known = predictor.model.trained_on, 0

    def noted() -> Pairs:
        nonlocal known
        for found, target in scored_pairs(predictor, truth):
            known += fingerprint is not None and fingerprint.seen(target)
            yield found, target

    try:
        state.stream(_shown(noted(), len(truth)))
    except (MetricError, GraphError) as error:
        raise DataError(data, str(error)) from None
    result = state.result()
    if informative:
        result.notes.append(f"Predicates weighted by their training frequency to the power -{informative:g}.")
    if known:
        result.notes.insert(0, trained_on_note(known, len(truth)))
    return result


def trained_on_note(known: int, images: int) -> str:
    """What is said where a model is scored on images that it was trained on."""
    return (
        f"SCORED ON ITS OWN TRAINING IMAGES: {known:,} of {images:,}. "
        "These figures do not show how well the model does on new images."
    )


def matched(found: Dataset, truth: Dataset, allow_missing: bool) -> Pairs:
    """Each prediction with its ground truth, by image id or file name; every image of the data exactly once."""
    from scenegpi.data import DataError
    from scenegpi.metrics.alignment import Alignment

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
        try:
            yield align(graph), truth[i]
        except MetricError as error:
            raise MetricError(f"image {names[0]!r:.60}: {error}") from None
    missing = [i for i in range(len(truth)) if i not in seen]
    if missing and not allow_missing:
        raise MetricError(
            f"no prediction for {len(missing):,} of {len(truth):,} images, the first is image "
            f"{_names(truth[missing[0]])[0]!r:.60} (--allow-missing counts them as images without predictions)"
        )
    for i in missing:
        target = truth[i]
        yield target.replace(relations=(), relation_scores=None, pairs=None, pair_dist=None), target


def _names(graph: SceneGraph) -> list[str]:
    return [str(name) for name in (graph.image_id, graph.file) if name is not None]


def _training(train: Path, vocabulary: Vocabulary) -> dict[str, Any]:
    """Zero-shot triplets and predicate groups from the training data."""
    import numpy as np

    from scenegpi.data import open_dataset
    from scenegpi.metrics.alignment import Alignment
    from scenegpi.metrics.zero_shot import ZeroShot, predicate_groups

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


def _shown(pairs: Pairs, total: int) -> Pairs:
    from scenegpi.progress import watched

    return watched(pairs, "scoring", total)
