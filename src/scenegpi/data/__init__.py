"""Files -> SceneGraph, and back.

from scenegpi.data import open_dataset
train = open_dataset("vg150", split="train", validation=1291)
train[0].triplets(top=5)
"""

from scenegpi.data.convert import WRITERS, convert
from scenegpi.data.dataset import Dataset
from scenegpi.data.jsonl import write_jsonl
from scenegpi.data.open import FORMATS, open_dataset, sample_path, validate
from scenegpi.data.statistics import Statistics, statistics
from scenegpi.errors import DataError, Defect, Report

__all__ = [
    "FORMATS",
    "WRITERS",
    "DataError",
    "Dataset",
    "Defect",
    "Report",
    "Statistics",
    "convert",
    "open_dataset",
    "sample_path",
    "statistics",
    "validate",
    "write_jsonl",
]
