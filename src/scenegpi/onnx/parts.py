"""Files that read whole photos: a square of the photo by Resize, then what sees, then the layout model.

| part | reads | gives |
|---|---|---|
| `eyes_`: vision | the photo as a square, its size, boxes | label distributions |
| `eyes_`: finder | the photo as a square, its size | boxes, the chance of each, label distributions |
| `layout_` | boxes, sizes, label distributions | distributions of labels and pairs |

A file's own Resize differs from Pillow's by a few of 255 levels. A `Predictor` takes the two parts out of such a file
and resizes by Pillow, so that its answers are those of torch.
"""

from __future__ import annotations

from typing import Any

from scenegpi.errors import DataError, require

EYES, LAYOUT = "eyes_", "layout_"
_START = """start (uint8[height, width, 3] image) => () {{
    planes = Transpose <perm = [2, 0, 1]> (image)
    colours = Cast <to = 1> (planes)
    first = Constant <value_ints = [0]> ()
    picture = Unsqueeze (colours, first)
    shape = Constant <value_ints = [1, 3, {side}, {side}]> ()
    resized = Resize <mode = "linear", antialias = 1> (picture, , , shape)
    rounded = Round (resized)
    levels = Cast <to = 2> (rounded)
    eyes_square = Squeeze (levels, first)
    extent = Shape (image)
    order = Constant <value_ints = [1, 0]> ()
    across = Gather (extent, order)
    eyes_size = Cast <to = 11> (across)
}}"""
_GIVEN = "given () => () { eyes_boxes = Identity (boxes) }"
_BETWEEN = """between () => () {
    layout_boxes = Identity (eyes_boxes)
    layout_label_dist = Identity (eyes_label_dist)
    layout_sizes = Unsqueeze (eyes_size, first)
    layout_counts = Shape <start = 0, end = 1> (eyes_boxes)
    none = Constant <value_int = 0> ()
    layout_labels_given = Cast <to = 9> (none)
}"""
_FOUND = "found () => () { boxes = Identity (eyes_boxes) sure = Identity (eyes_sure) }"
_END = """end () => () {
    labels = Identity (layout_labels)
    relations = Identity (layout_relations)
    pairs = Identity (layout_pairs)
}"""


def joined(eyes: Any, layout: Any) -> Any:
    """The `onnx.ModelProto` that reads a photo, and boxes where the eyes do not find them."""
    import onnx

    side = eyes.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    start = onnx.parser.parse_graph(_START.format(side=side))
    given = [each for each in eyes.graph.input if each.name == "boxes"]
    found = [each for each in eyes.graph.output if each.name in ("boxes", "sure")]
    inputs, outputs = [*start.input, *given], [*found, *layout.graph.output]
    between, end = ([_GIVEN], [_END]) if given else ([], [_FOUND, _END])
    first, second = (onnx.compose.add_prefix(part, name).graph for part, name in ((eyes, EYES), (layout, LAYOUT)))
    steps = [start, *map(onnx.parser.parse_graph, between), first, onnx.parser.parse_graph(_BETWEEN), second]
    graph = onnx.helper.make_graph(
        [node for step in (*steps, *map(onnx.parser.parse_graph, end)) for node in step.node],
        "scenegpi",
        inputs,
        outputs,
        [*first.initializer, *second.initializer],
        value_info=[each for part in (first, second) for each in (*part.input, *part.output)],
    )
    return onnx.helper.make_model(graph, opset_imports=layout.opset_import, ir_version=layout.ir_version)


def apart(data: bytes, where: str) -> tuple[bytes, bytes]:
    """The eyes and the layout model of such a file, each a file of its own; names keep their prefix."""
    require("onnx", "onnx", "onnx")
    import onnx

    try:
        model = onnx.load_from_string(data)
        names = [each.name for each in model.graph.value_info]
        seen = ["boxes", "sure", "label_dist"] if EYES + "sure" in names else ["label_dist"]
        found = []
        for prefix, given in ((EYES, seen), (LAYOUT, ["labels", "relations", "pairs"])):
            outputs = [prefix + name for name in given]
            inputs = [name for name in names if name.startswith(prefix) and name not in outputs]
            found.append(onnx.utils.Extractor(model).extract_model(inputs, outputs).SerializeToString())
        return found[0], found[1]
    except Exception as error:  # of protobuf, of onnx, of a file that only says that it is ours
        raise DataError(where, f"its parts cannot be told apart ({str(error)!r:.200})") from None
