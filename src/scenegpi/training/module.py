"""The Lightning module: one step of training, validation by recall, a running mean of the weights."""

from __future__ import annotations

import copy
import math
from typing import Any

import lightning as L
import numpy as np
import torch
from torch import Tensor

from scenegpi.errors import DataError
from scenegpi.features.batch import SceneBatch, Seen
from scenegpi.metrics import Plan, Protocol, RecallState
from scenegpi.models.build import SceneModel
from scenegpi.models.predict import predict_seen
from scenegpi.training.config import TrainConfig
from scenegpi.training.losses import scene_loss

MONITOR = "R@50"
KS = (20, 50, 100)
_WARM_AVERAGE = 10


def recall_figures(state: RecallState) -> dict[str, float]:
    """R@K and mR@K, as shares; those that there are."""
    found = state.result().figures
    return {name: found[name] for k in KS for name in (f"R@{k}", f"mR@{k}") if math.isfinite(found[name])}


class SceneModule(L.LightningModule):
    """Trains `model`; validates and keeps `best_model`, the running mean of its weights (or the model itself).

    Args:
        model: prepared.
        config: of the run.
        balance: (P,) weights of the predicates for the balanced loss.
        run: names the run in errors.
    """

    balance: Tensor | None

    def __init__(self, model: SceneModel, config: TrainConfig, balance: Tensor | None = None, run: str = "run") -> None:
        super().__init__()
        self.model, self.config, self.run = model, config, run
        self.average = copy.deepcopy(model).requires_grad_(False) if config.optim.average else None
        self.register_buffer("balance", balance, persistent=False)
        self.plan = Plan(Protocol(task=config.scored_task, constraint="graph", ks=KS), model.vocabulary)
        self.recall = RecallState(self.plan)

    @property
    def best_model(self) -> SceneModel:
        """The weights that are validated and kept."""
        return self.model if self.average is None else self.average

    def on_train_epoch_start(self) -> None:
        # The context is trained on the baseline that was validated, the mean of its weights.
        first = self.config.optim.first_epochs
        if self.average is not None and first and self.current_epoch == first:
            self.model.baseline.load_state_dict(self.average.baseline.state_dict())

    def training_step(self, batch: SceneBatch, number: int) -> Tensor:
        """The loss of a batch, divided by its images."""
        # Dropout and drawn targets depend on the place in the run, not on what ran before: a resumed run repeats them.
        seed = (self.config.seed, self.current_epoch, number, self.global_rank)
        torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
        first = self.current_epoch < self.config.optim.first_epochs
        out = self.model.baseline(batch) if first else self.model(batch)
        losses = scene_loss(out, batch, self.config.loss, self.balance, self._mean_over_processes)
        loss = losses.sum()
        if not bool(torch.isfinite(loss)):
            self._stop(batch, losses.detach(), number)
        self.log("loss", loss.detach(), batch_size=batch.num_graphs, prog_bar=True, on_epoch=True, on_step=False)
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.average is not None:
            decay = min(self.config.optim.average, (self.global_step + 1) / (self.global_step + _WARM_AVERAGE))
            with torch.no_grad():
                for mean, value in zip(self.average.parameters(), self.model.parameters(), strict=True):
                    mean.lerp_(value, 1 - decay)

    def on_validation_epoch_start(self) -> None:
        self.recall = RecallState(self.plan)

    def validation_step(self, images: list[Seen], number: int) -> None:
        """Predicts a group of validation images and counts what is found."""
        found = list(predict_seen(self.best_model, images, self.config.scored_task))
        self.recall.update(found, [image.graph for image in images])

    def on_validation_epoch_end(self) -> None:
        if self.trainer.world_size > 1:
            sums = torch.from_numpy(self.recall.sums).to(self.device)
            self.recall.sums[:] = self.trainer.strategy.reduce(sums, reduce_op="sum").cpu().numpy()
        for name, value in self.figures().items():
            self.log(name, 100 * value, prog_bar=name == MONITOR, rank_zero_only=False)

    def figures(self) -> dict[str, float]:
        """R@K and mR@K of the last validation, as shares."""
        return recall_figures(self.recall)

    def configure_optimizers(self) -> Any:
        """Adam with decoupled weight decay on matrices, warm-up, then a cosine."""
        optim = self.config.optim
        baseline = {id(each) for each in self.model.baseline.parameters()}
        groups: dict[tuple[float, float], list[Tensor]] = {}
        for name, each in self.model.named_parameters():
            if each.requires_grad:
                decay = optim.weight_decay if id(each) in baseline else optim.context_decay
                share = optim.pair_rate if ".edge_" in name else 1.0
                groups.setdefault((decay if each.dim() > 1 else 0.0, share), []).append(each)
        settings = [
            {"params": params, "weight_decay": decay, "lr": share * optim.learning_rate}
            for (decay, share), params in groups.items()
        ]
        adam = torch.optim.AdamW(settings, lr=optim.learning_rate)
        whole = max(int(self.trainer.estimated_stepping_batches), 1)
        first = whole * min(optim.first_epochs, optim.epochs) // optim.epochs

        def rate(step: int) -> float:
            step, steps = (step, first) if step < first else (step - first, whole - first)
            warm = min(1.0, (step + 1) / max(optim.warmup, 1))
            if optim.schedule == "constant":
                return warm
            return warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(step / max(steps, 1), 1.0))))

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
        value = float(losses.sum())
        raise DataError(
            self.run, f"the loss is {value} in epoch {self.current_epoch + 1}, step {number + 1}: image {images}{more}"
        )
