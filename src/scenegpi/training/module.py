"""The Lightning module: one step of training, and validation by recall."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import lightning as L
import torch
from torch import Tensor

from scenegpi.errors import DataError, GraphError
from scenegpi.features.batch import SceneBatch
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState
from scenegpi.models.build import SceneModel
from scenegpi.prediction import PredictOptions, Predictor
from scenegpi.training.config import TrainConfig
from scenegpi.training.losses import scene_loss

MONITOR = "R@50"
KS = (20, 50, 100)
WEIGHT_DECAY, CONTEXT_DECAY = 1e-4, 1e-3
"""Weight decay of the matrices of the baseline or a whole system, and of a network on a frozen baseline."""
LOWEST_RATE = 0.02


class SceneModule(L.LightningModule):
    """Trains and validates a prepared model; `run` names the run in errors."""

    def __init__(self, model: SceneModel, config: TrainConfig, run: str = "") -> None:
        super().__init__()
        self.model, self.config, self.run = model, config, run
        self.plan = recall_plan(config, model)
        self.recall = RecallState(self.plan)

    def training_step(self, batch: SceneBatch, number: int) -> Tensor:
        """The loss of a batch, divided by its images."""
        out = self.model(batch)
        losses = scene_loss(out, batch, self.config.stage.loss, self._mean_over_processes)
        losses = self.model.network.training_loss(batch, out, losses)
        loss, several = losses.sum(), self.trainer.world_size > 1
        if not bool(torch.isfinite(loss)):
            self._stop(batch, losses.detach(), number)
        self.log("loss", loss.detach(), batch_size=batch.num_graphs, on_epoch=True, on_step=False, sync_dist=several)
        return loss

    def on_validation_epoch_start(self) -> None:
        self.recall = RecallState(self.plan)

    def validation_step(self, images: list[SceneGraph], number: int) -> None:
        """Predicts a group of validation images and counts the relations found."""
        self.recall.update(scored(self.model, images, self.config.scored_task), images)

    def on_validation_epoch_end(self) -> None:
        if self.trainer.world_size > 1:
            sums = torch.from_numpy(self.recall.sums).to(self.device)
            self.recall.sums[:] = self.trainer.strategy.reduce(sums, reduce_op="sum").cpu().numpy()
        for name, value in recall_figures(self.recall).items():
            self.log(name, 100 * value)

    def configure_optimizers(self) -> Any:
        """Adam with decoupled weight decay on matrices, warm-up, then a cosine."""
        optim = self.config.stage.optim
        decay = CONTEXT_DECAY if self.model.config.two_stages else WEIGHT_DECAY
        groups: dict[tuple[float, float], list[Tensor]] = {}
        for name, each in self.model.named_parameters():
            if each.requires_grad:
                share = optim.pair_rate if ".edge_" in name else 1.0
                groups.setdefault((decay if each.dim() > 1 else 0.0, share), []).append(each)
        settings = [
            {"params": params, "weight_decay": decay, "lr": share * optim.learning_rate}
            for (decay, share), params in groups.items()
        ]
        adam = torch.optim.AdamW(settings, lr=optim.learning_rate)
        steps = max(int(self.trainer.estimated_stepping_batches), 1)

        def rate(step: int) -> float:
            warm = min(1.0, (step + 1) / max(optim.warmup, 1))
            fall = 0.5 * (1 + math.cos(math.pi * min(step / steps, 1.0)))
            return warm * (LOWEST_RATE + (1 - LOWEST_RATE) * fall)

        schedule = torch.optim.lr_scheduler.LambdaLR(adam, rate)
        return {"optimizer": adam, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _mean_over_processes(self, counts: Tensor) -> Tensor:
        if self.trainer.world_size == 1:
            return counts
        return self.trainer.strategy.reduce(counts.clone(), reduce_op="mean")

    def _stop(self, batch: SceneBatch, losses: Tensor, number: int) -> None:
        bad = (~torch.isfinite(losses)).nonzero().flatten().tolist()
        images = ", ".join(repr(batch.ids[g]) for g in bad[:3]) or "none alone"
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        where = f"epoch {self.current_epoch + 1}, step {number + 1}: image {images}{more}"
        raise DataError(self.run, f"the loss is {float(losses.sum())} in {where}")


def recall_plan(config: TrainConfig, model: SceneModel) -> Plan:
    """How validation images are scored."""
    return Plan(Protocol(task=config.scored_task, constraint="graph", ks=KS), model.labels)


def scored(model: SceneModel, images: Iterable[SceneGraph], task: Any) -> list[SceneGraph]:
    """A model's predictions for images in its vocabulary, in the form for recall; GraphError for one without labels."""
    predictor = Predictor(model, options=PredictOptions.scoring(task), device=model.device)
    found = []
    for prediction in predictor.stream(images):
        if prediction.graph is None:
            raise GraphError(prediction.problem)
        found.append(prediction.graph)
    return found


def recall_figures(state: RecallState) -> dict[str, float]:
    """R@K and mR@K as fractions, without undefined ones."""
    found = state.result().figures
    return {name: found[name] for k in KS for name in (f"R@{k}", f"mR@{k}") if math.isfinite(found[name])}
