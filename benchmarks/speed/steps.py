"Single training steps, to be measured one by one."

from dataclasses import dataclass

import torch
from torch import nn

from annotated_transformer.training.loop import Run, TrainConfig, train_step
from annotated_transformer.training.loss import LossFn


@dataclass
class Steps:
    "A training that goes on by one step when it is called, always at the optimizer's rate."

    model: nn.Module  # may be compiled
    optimizer: torch.optim.Optimizer
    loss_fn: LossFn
    config: TrainConfig = TrainConfig()  # its precision and clipping

    def __post_init__(self):
        for group in self.optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        config = self.config.replace(schedule="constant", warmup_steps=1)
        self.run = Run(self.model, self.optimizer, config, config.callbacks())

    def __call__(self, batch) -> float:  # the loss
        train_step(self.run, [batch], self.loss_fn)
        return float(self.run.loss)
