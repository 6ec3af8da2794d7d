"""The shapes of requests and responses; the interface at /docs is generated from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from scenegpi.serve.settings import Bounds

Coordinate = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Box = tuple[Coordinate, Coordinate, Coordinate, Coordinate]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Side = Annotated[int, Field(ge=1, le=100_000)]
Number = Annotated[int, Field(ge=0, le=2**53)]


class Problem(BaseModel):
    """What went wrong, in one line."""

    detail: str


class Strict(BaseModel):
    """Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


def _each(description: str) -> Any:
    return Field(description=description, max_length=Bounds.boxes)


Photo = Annotated[str | None, Field(description="A picture file, base64.", max_length=Bounds.body)]
GraphJson = Annotated[dict[str, Any], Field(description="In the JSON form of docs/formats.md.")]


class PredictRequest(Strict):
    """A photo, boxes, or both."""

    photo: Photo = None
    image: Annotated[Number | None, Field(description="The number of an image of this server, instead of a photo.")] = (
        None
    )
    boxes: Annotated[list[Box] | None, _each("x1, y1, x2, y2 in pixels; by default, boxes are found.")] = None
    labels: Annotated[list[Name | None] | None, _each("A name for each box; null: predicted from the photo.")] = None
    scores: Annotated[list[Share] | None, _each("The certainty of each label; a label with a score may change.")] = None
    width: Annotated[Side | None, Field(description="Width of the image that the boxes refer to.")] = None
    height: Side | None = None
    model: Annotated[Name | None, Field(description="One of /api/models; by default chosen by the input.")] = None
    informative: Annotated[Share, Field(description="Preference for rare predicates, from 0 (none) to 1.")] = 0.3
    top: Annotated[int, Field(ge=0, le=500, description="Maximum number of relations.")] = 20
    min_relation: Annotated[
        Share | None, Field(description="Minimum score of a relation; null: as on the command line.")
    ] = None
    alternatives: Annotated[int, Field(ge=0, le=10, description="Predicates listed for each pair.")] = 0
    drawing: Annotated[bool, Field(description="Also give the graph as SVG.")] = False


class Pair(Strict):
    """An ordered pair of boxes: P(related), and the likeliest predicates with their probabilities."""

    subject: int
    object: int
    related: float
    predicates: list[tuple[str, float]]


class PredictAnswer(Strict):
    """The graph in the JSON form of docs/formats.md, with details.

    `kept`: the indices of the given boxes in it. `why`: how the model was chosen. `notes`: boxes that were left out.
    `pairs`: other predicates of each pair. `colours`: of its objects in `drawing`, an SVG.
    """

    graph: dict[str, Any]
    kept: list[int]
    model: str
    why: str = ""
    photo_read: bool
    notes: list[str]
    pairs: list[Pair]
    drawing: str | None = None
    colours: list[str]


class AttentionAnswer(Strict):
    """`neighbours` (N, N): what each object attends to; `nodes` (N,): what the graph vector attends to."""

    neighbours: list[list[float]]
    nodes: list[float]


class DrawRequest(Strict):
    """A graph to write as a file."""

    graph: GraphJson
    format: Literal["png", "svg", "graphml", "json"] = "png"
    photo: Photo = None
    image: Number | None = None


class ModelInfo(Strict):
    """A model: `photos` says whether it uses them."""

    name: str
    photos: bool
    objects: Sequence[str]
    predicates: Sequence[str]


class Models(Strict):
    """The shipped models, and the one that the server was started with."""

    models: list[ModelInfo]


class Health(Strict):
    """The server answers."""

    status: Literal["ok"] = "ok"
    version: str


class ImageInfo(Strict):
    """An image in a list."""

    image: int
    key: str
    file: str | None
    photo: bool


class Images(Strict):
    """Some images, and the total number."""

    images: list[ImageInfo]
    total: int


class MatchInfo(Strict):
    """One match: the object for each thing in the query, and its label."""

    objects: list[int | None]
    labels: list[str | None]
    boxes: list[tuple[float, float, float, float] | None]
    score: float


class HitInfo(ImageInfo):
    """An image that a search found; if its photo has `changed` since it was indexed, without the matches."""

    changed: bool = False
    score: float
    count: int
    width: int | None
    height: int | None
    matches: list[MatchInfo]


class SearchAnswer(Strict):
    """The results of a search; `query` shows how the line was understood."""

    query: str
    hits: list[HitInfo]
    total: int
    notes: list[str]


class Similar(Strict):
    """Images that are similar to another one, most similar first."""

    hits: list[HitInfo]


class TagList(Strict):
    """Tags of an image, given by people."""

    tags: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=100)]


Counted = Annotated[list[str | int], Field(min_length=2, max_length=2, description="A name and its count.")]


class Facets(Strict):
    """Values to filter images by, with their counts, the most frequent first."""

    labels: list[Counted]
    predicates: list[Counted]
    statuses: dict[str, int]
    tags: list[Counted]


class Suggestions(Strict):
    """Triplets and labels of the store."""

    suggestions: list[str]


class ImageGraph(ImageInfo):
    """An image, its graph (null: not predicted yet, or its photo has `changed` since), its place in the order, and the
    previous and next images."""

    changed: bool = False
    place: int
    before: int | None
    after: int | None
    width: int | None
    height: int | None
    graph: dict[str, Any] | None
    drawing: str | None = None
    colours: list[str] = []
    tags: list[str] = []


class LibraryInfo(Strict):
    """The data and settings that the server was started with."""

    kind: Literal["nothing", "store", "data", "photos"]
    name: str
    total: int
    search: bool
    annotate: bool
    predict: Annotated[bool, Field(description="Whether folders can be predicted from here.")] = False
    tags: Annotated[bool, Field(description="Whether images can be tagged.")] = False
    model: str | None
    id: Annotated[str, Field(description="An id of the data, the same for the same path.")] = ""


Status = Literal["begun", "done", "reviewed", "rejected"]


class Annotation(Strict):
    """A person's annotation of an image, as a change to a revision (0: nothing is saved yet)."""

    graph: GraphJson
    status: Status = "begun"
    based_on: Annotated[Number, Field(description="The revision that was changed; 409 if it is not the newest.")] = 0
    change: Annotated[str, Field(max_length=64, description="An id: a change that is sent twice is saved once.")] = ""
    machine: Annotated[
        list[Number], Field(max_length=Bounds.annotated, description="Boxes that no person has touched.")
    ] = []
    by: Annotated[str, Field(max_length=100, description="Who made the change; free text.")] = ""
    comment: Annotated[str, Field(max_length=2000)] = ""


class Kept(Strict):
    """A state of an image; `graph` is null if nothing is saved."""

    graph: dict[str, Any] | None
    revision: int
    status: Status = "begun"
    machine: list[int] = []
    by: str = ""
    comment: str = ""


class Version(Kept):
    """A state of an image in its history."""

    at: str


class AnnotationAnswer(Kept):
    """The saved annotation of an image, and the names to annotate with."""

    image: int
    key: str
    change: str = ""
    objects: Sequence[str]
    predicates: Sequence[str]


class History(Strict):
    """The states of an image, newest first."""

    versions: list[Version]


class Saved(Strict):
    """The change is on the disk; with counts of all annotations."""

    revision: int
    images: int
    done: int
    relations: int


class Names(Strict):
    """Names to add to the annotations' vocabulary, or all its names."""

    objects: Annotated[list[Name], Field(max_length=10_000)] = []
    predicates: Annotated[list[Name], Field(max_length=10_000)] = []


class Next(Strict):
    """The next image to annotate; null if all are done."""

    image: int | None


class Progress(Strict):
    """Counts of images, annotated and finished images, and relations; the status of each image by key."""

    total: int
    images: int
    done: int
    relations: int
    statuses: dict[str, Status]
