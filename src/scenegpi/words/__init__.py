"""Words: word vectors from files, and maps from one set of labels to another.

words = load_words(Path("glove.txt"), ["man", "horse"])
labels = LabelMap.between(coco, vg150)          # labels["tv"].target == "screen"
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.words.label_map import LabelMap
    from scenegpi.words.vectors import WordVectors, label_table, load_glove_text, load_words, predicate_table

__getattr__, __dir__, __all__ = lazy(__name__)
