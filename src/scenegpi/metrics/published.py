"""Figures that papers report, each with its protocol, for tables next to ours: Visual Genome, given boxes."""

from __future__ import annotations

from dataclasses import dataclass

from scenegpi.metrics.protocol import Empty, Protocol, Task

VG150_OFFICIAL = "Visual Genome, 150 classes and 50 predicates, official test split, all annotated boxes"


@dataclass(frozen=True)
class Published:
    """A system's reported figures on one task, in 0..1, and where they come from."""

    system: str
    source: str
    protocol: Protocol
    figures: dict[str, float]
    note: str = ""


_Pair = tuple[float, float] | None
_FPN = "ResNeXt-101-FPN detector"
_ROWS: tuple[tuple[str, str, _Pair, _Pair, _Pair, _Pair, str], ...] = (
    # system, source, PredCls, SGCls, PredCls ng, SGCls ng, note
    ("Lu et al. 2016", "paper", (27.9, 35.0), (11.8, 14.1), None, None, "its table prints the PredCls figures swapped"),
    ("Xu et al. 2017 (IMP)", "paper", (44.8, 53.0), (21.7, 24.4), None, None, ""),
    ("Pixel2Graph 2017", "paper", None, None, (68.0, 75.2), (26.5, 30.0), ""),
    ("Graph R-CNN 2018", "paper", (54.2, 59.1), (29.6, 31.6), None, None, ""),
    ("FREQ", "Neural Motifs", (59.9, 64.1), (32.4, 34.0), None, None, ""),
    ("FREQ + overlap", "Neural Motifs", (60.6, 62.2), (32.3, 32.9), None, None, ""),
    ("Neural Motifs, no context", "paper", (63.7, 65.6), (34.6, 35.3), (78.8, 85.9), (43.4, 46.6), ""),
    ("Neural Motifs", "paper", (65.2, 67.1), (35.8, 36.5), (81.1, 88.3), (44.5, 47.7), ""),
    ("GPI, no attention", "paper", (64.5, 66.3), (35.3, 37.2), (79.7, 86.7), (44.1, 48.5), ""),
    ("GPI, neighbour attention", "paper", (64.6, 66.6), (35.7, 38.5), (80.0, 87.1), (44.7, 49.9), ""),
    ("GPI, linguistic", "paper", (65.1, 66.9), (36.5, 38.8), (80.8, 88.2), (45.5, 50.8), ""),
    ("IMP, re-implemented", "Scene-Graph-Benchmark", (61.1, 63.1), (37.5, 38.5), None, None, _FPN),
    ("Motifs, re-implemented", "Scene-Graph-Benchmark", (65.2, 67.0), (38.9, 39.8), None, None, _FPN),
    ("VCTree", "VCTree", (66.4, 68.1), (38.1, 38.8), None, None, ""),
    ("PE-Net(P)", "PE-Net", (68.2, 70.1), (41.3, 42.3), None, None, ""),
)
_SKIPS_EMPTY = ("Scene-Graph-Benchmark", "PE-Net")


def published(task: Task) -> list[Published]:
    """The systems that report this task, oldest first; none for sgdet."""
    found = []
    for system, source, predcls, sgcls, predcls_ng, sgcls_ng, note in _ROWS:
        chosen = {"predcls": (predcls, predcls_ng), "sgcls": (sgcls, sgcls_ng)}.get(task, (None, None))
        figures = {
            f"{prefix}R@{k}": round(value / 100, 4)
            for prefix, pair in zip(("", "ng"), chosen, strict=True)
            if pair is not None
            for k, value in zip((50, 100), pair, strict=True)
        }
        if figures:
            empty: Empty = "skip" if source in _SKIPS_EMPTY else "field"
            protocol = Protocol(task, ks=(50, 100), empty=empty, data=VG150_OFFICIAL)
            found.append(Published(system, source, protocol, figures, note))
    return found


_RECALL_AT_5 = """
on 0.9971 0.9925 0.993; has 0.9803 0.9725 0.987; in 0.8038 0.8830 0.959; of 0.8247 0.9675 0.981;
wearing 0.9847 0.9823 0.996; near 0.8516 0.9681 0.954; with 0.3185 0.8810 0.942; above 0.4919 0.7973 0.839;
holding 0.6150 0.8067 0.955; behind 0.7935 0.9232 0.912; under 0.2864 0.5273 0.832; sitting on 0.3174 0.5017 0.904;
in front of 0.2609 0.5963 0.749; attached to 0.0845 0.2958 0.774; at 0.5408 0.7041 0.809;
hanging from 0.0 0.0 0.741; over 0.0926 0.0 0.624; for 0.1220 0.3171 0.451; riding 0.7243 0.8972 0.961
"""
PREDICATE_RECALL_AT_5 = {
    name: (float(lu), float(xu), float(gpi))
    for name, lu, xu, gpi in (row.strip().rsplit(" ", 3) for row in _RECALL_AT_5.split(";"))
}
"""PredCls recall@5 of each predicate: Lu et al. 2016, Xu et al. 2017, GPI linguistic (the paper's supplement)."""
