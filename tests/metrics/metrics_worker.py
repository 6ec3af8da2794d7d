"""One of two processes of a distributed evaluation: `python metrics_worker.py RANK MEETING_FILE OUT SPLIT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from metrics.metrics_cases import PREDICATES, random_images
from scenegpi.metrics import Protocol, SceneGraphRecall


def main() -> None:
    rank, meeting, out = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    predictions, targets = random_images(3, 21)
    if sys.argv[4] == "even":
        found = SceneGraphRecall(Protocol(ks=(2, 5)), PREDICATES, bootstrap=40)
        found.update(predictions[rank::2], targets[rank::2])
    else:
        found = SceneGraphRecall((2, 5), bootstrap=40)
        if rank:
            found.update(predictions, targets)
    figures = {name: float(value) for name, value in found.compute().items()}
    out.write_text(json.dumps({"compute": figures, "result": found.result().to_dict()}))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
