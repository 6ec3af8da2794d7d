"""Search: speed and memory on generated graphs, and retrieval of VRD photos by their annotated graphs.

    python benchmarks/search.py speed --images 1000000 [--store FOLDER] [--json FILE]
    python benchmarks/search.py vrd --data VRD [--models NAME ...] [--skip FILE --skip-photos DIR] [--json FILE]

`speed`: each generated image has 12 objects and 10 relations, with Visual Genome's long tail (Zipf's law over 150
labels and 50 predicates). Peak memory is that of the whole process.

`vrd` (Johnson et al. 2015): the query is the annotated graph of a test image, and the answer sought is that image among
all test photos whose annotation has a relation. Of a model that uses photos there are two rows: "labels found" has the
boxes of the annotation, "boxes found" nothing but the photo. Of one that does not, boxes and labels are given. The row
"annotations" shows what perfect predictions would give. --skip and --skip-photos, as in vrd_test.py, leave out photos
that the photo network was trained on.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finder import photos_of
from scenegpi.data import open_dataset
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.store import Store
from scenegpi.store.folder import is_store
from scenegpi.vocabulary import Vocabulary
from timing import peak
from vrd_test import known_photos

OBJECTS, RELATIONS, BLOCK = 12, 10, 10_000
LABELS = ["man", "woman", "person", "horse", "hat", "shirt", "dog", "tree", "bench", "street"]
PREDICATES = ["on", "has", "wearing", "riding", "near", "holding", "in", "under", "behind", "sitting on"]
WORDS = Vocabulary(
    LABELS + [f"thing {k}" for k in range(150 - len(LABELS))],
    PREDICATES + [f"relates {k}" for k in range(50 - len(PREDICATES))],
    "generated",
)
QUERIES = {
    "one triple": "person riding horse",
    "three triples": "person ?a riding ?b and ?a wearing hat and ?a near ?c",
    "three triples, apart": "woman wearing shirt and man riding horse and dog on *",
    "without": "person ?a riding horse and without ?a wearing hat",
    "count": "at least 3 person and dog on bench",
    "anything": "* riding *",
}
REPEATS = 5


def generated(images: int, seed: int = 0) -> Iterator[SceneGraph]:
    """Random graphs, made in blocks."""
    rng = np.random.default_rng(seed)
    label_share, predicate_share = (1 / np.arange(1, n + 1) for n in (len(WORDS.objects), len(WORDS.predicates)))
    for start in range(0, images, BLOCK):
        n = min(BLOCK, images - start)
        corners = np.sort(rng.uniform(0, 640, (n, OBJECTS, 2, 2)), axis=2).reshape(n, OBJECTS, 4)
        labels = rng.choice(len(label_share), (n, OBJECTS), p=label_share / label_share.sum()).astype(np.int32)
        ends = rng.integers(0, OBJECTS, (n, RELATIONS, 2))
        words = rng.choice(len(predicate_share), (n, RELATIONS, 1), p=predicate_share / predicate_share.sum())
        relations = np.concatenate([ends, words], axis=2).astype(np.int32)
        scores = rng.uniform(0.2, 1, (n, OBJECTS)).astype(np.float32)
        own = rng.uniform(0.1, 1, (n, RELATIONS)).astype(np.float32)
        for k in range(n):
            yield SceneGraph.trusted(
                boxes=corners[k], labels=labels[k], scores=scores[k], relations=relations[k], relation_scores=own[k],
                vocabulary=WORDS, image_id=start + k, file=f"{start + k}.jpg", width=640, height=640,
            )  # fmt: skip


def speed(images: int, folder: Path | None) -> dict[str, Any]:
    """Time to index, size on disk, time of queries (median of REPEATS), peak memory."""
    place = folder or Path(tempfile.mkdtemp()) / "store"
    store = Store(place)
    figures: dict[str, Any] = {"images": images}
    if not is_store(place):
        _, *figures["index seconds, of the CPU"] = _timed(lambda: store.add(generated(images)))
        figures["index peak MB"] = round(peak())
    figures["disk MB"] = round(sum(path.stat().st_size for path in place.iterdir()) / 1e6)
    figures["queries"] = {}
    for name, text in QUERIES.items():
        runs = [_timed(partial(store.search, text)) for _ in range(REPEATS)]
        spent = np.median([run[1:] for run in runs], axis=0).round(3).tolist()
        figures["queries"][name] = {"query": text, "images": runs[0][0].images, "seconds, of the CPU": spent}
    query = store.graph(images // 2)
    found, *spent = _timed(lambda: store.similar(query, limit=1))
    figures["by a whole graph"] = {"seconds, of the CPU": spent, "first is itself": found[0].key == str(images // 2)}
    figures["peak MB"] = round(peak())
    if folder is None:
        shutil.rmtree(place.parent)
    return figures


def _timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What it gives, seconds, and seconds of the CPU over all threads (on a busy machine the former are more)."""
    begun, used = time.perf_counter(), time.process_time()
    given = work()
    return given, round(time.perf_counter() - begun, 3), round(time.process_time() - used, 3)


def vrd(data: Path, models: Sequence[str], known: Container[str | None]) -> dict[str, Any]:
    """Ranks of the image whose annotation is the query, for each kind of predictions; `known` photos are left out."""
    scenes = [(graph, photo) for photo, graph in photos_of(open_dataset(data, "test")) if graph.file not in known]
    truth = [graph for graph, _ in scenes]
    figures: dict[str, Any] = {"photos": len(truth)}
    for name in models:
        for row, graphs in _predicted(name, scenes).items():
            figures[row] = _figures(_ranks(graphs, truth))
    figures["annotations"] = _figures(_ranks(truth, truth))
    figures["by chance"] = _figures(np.arange(1, len(truth) + 1))
    return figures


def _predicted(name: str, scenes: Sequence[tuple[SceneGraph, Path]]) -> dict[str, list[SceneGraph]]:
    """Graphs by a model: with labels given, or where it uses photos with labels found and with boxes found as well."""
    from scenegpi.models import load_model
    from scenegpi.prediction import Item, PredictOptions, Predictor

    model = load_model(name)
    boxes = [graph.replace(relations=()) for graph, _ in scenes]
    if model.vision is None:
        kinds = {"labels given": [Item(None, graph) for graph in boxes]}
    else:
        kinds = {
            "labels found": [Item(photo, graph) for graph, (_, photo) in zip(boxes, scenes, strict=True)],
            "boxes found": [Item(photo) for _, photo in scenes],
        }
    seen = 0 if model.trained_on is None else model.trained_on.count(boxes)
    warning = f", TRAINED ON {seen} OF THESE {len(scenes)} PHOTOS: NOT A TEST" if seen else ""
    rows = {}
    for kind, items in kinds.items():
        labels: Any = "believed" if kind == "labels given" else "found"
        options = PredictOptions(labels, top=100, min_relation=0.0, tidy=False, informative=0.0)
        found = [each.graph for each in Predictor(model, options=options).stream(items)]
        rows[f"{name}, {kind}{warning}"] = [
            (own.subset([]) if graph is None else graph).replace(image_id=own.image_id, file=own.file)
            for own, graph in zip(boxes, found, strict=True)
        ]
    return rows


def _figures(ranks: NDArray[Any]) -> dict[str, float]:
    return {"median rank": float(np.median(ranks))} | {
        f"R@{k}": round(100 * float((ranks <= k).mean()), 1) for k in (1, 5, 10)
    }


def _ranks(graphs: Sequence[SceneGraph], queries: Sequence[SceneGraph]) -> NDArray[Any]:
    """Places of the queries' own images in a store of these graphs, from 1."""
    with tempfile.TemporaryDirectory() as place:
        store = Store(Path(place) / "store")
        store.add(graphs)
        return np.array([_rank(store, query) for query in queries])


def _rank(store: Store, query: SceneGraph) -> float:
    """Place of the query's own image, from 1; images of the same score count half."""
    key = str(query.image_id if query.image_id is not None else query.file)
    scores = {hit.key: hit.score for hit in store.similar(query, limit=len(store))}
    own = scores[key]
    ties = sum(score == own for score in scores.values()) - 1
    return 1 + sum(score > own for score in scores.values()) + ties / 2


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "vrd"])
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--models", nargs="+", default=["vrd-photo", "vrd-layout"])
    parser.add_argument("--skip", type=Path, nargs="*", default=[], help="as in vrd_test.py")
    parser.add_argument("--skip-photos", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.what == "vrd" and args.data is None:
        parser.error("vrd needs --data")
    if args.what == "speed":
        figures = speed(args.images, args.store)
    else:
        figures = vrd(args.data, args.models, known_photos(args.skip, args.skip_photos))
    for name, value in figures.items():
        print(f"{name}: {value}")
    if args.json:
        write_json(args.json, figures)


if __name__ == "__main__":
    main()
