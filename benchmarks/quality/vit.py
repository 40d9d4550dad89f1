"""The image classifier of chapter 6.6 on scikit-learn's digits, over three seeds, beside smaller patches and a convolutional network, and
the trials on which its settings were chosen.

    python benchmarks/quality/vit.py [--device cuda] [--seeds 0,1,2]

Writes results/vit_DEVICE.json: the metrics of every run on the held-out fifth, and accuracies of other settings on a validation part of
the training pictures. Chapter 6.6 reads this file.
"""

import sys
import time
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/
from support.machine import Results, arguments
from torch import nn

from annotated_transformer.tasks.images import image_batches, random_affine
from annotated_transformer.tasks.image_classification import (
    ImageClassificationConfig,
    load_images,
    predict,
    run_image_classification,
)
from annotated_transformer.tasks.runs import count_parameters
from annotated_transformer.training.loss import classification_loss
from annotated_transformer.decoding.metrics import accuracy
from annotated_transformer.models.vit import ViTConfig
from annotated_transformer.base.devices import pick_device
from annotated_transformer.training.loop import train

ViTConfig.presets["tiny, patches of 2"] = ViTConfig.presets["tiny"] | dict(patch_size=2)
TRIALS = {
    "as it is": {},
    "without augmentation": dict(shift=0, degrees=0, scale=0),
    "a third of the steps": dict(steps=500),
}


def small_cnn(n_classes: int) -> nn.Sequential:  # N 1 8 8 -> N classes
    "Two convolutions of 3 x 3, the largest of 2 x 2 values, a hidden layer: about as many parameters as the Vision Transformer has."
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 80),
        nn.ReLU(),
        nn.Linear(80, n_classes),
    )


def run_cnn(config: ImageClassificationConfig, device: str) -> dict:
    "The same pictures, the same loop, another model."
    data, train_idx, test_idx = load_images(config)
    torch.manual_seed(config.seed)
    model = small_cnn(len(data.classes)).to(pick_device(device))
    change = partial(
        random_affine, shift=config.shift, degrees=config.degrees, scale=config.scale
    )
    batches = image_batches(
        data, train_idx, config.batch_size, seed=config.seed, augment=change
    )
    start = time.perf_counter()
    train(model, batches, config.training(), loss_fn=classification_loss)
    seconds = time.perf_counter() - start
    right = accuracy(predict(model, data.images, test_idx), data.labels[test_idx])
    return dict(
        seed=config.seed,
        accuracy=right,
        n_heldout=len(test_idx),
        train_seconds=round(seconds, 2),
        parameters=count_parameters(model),
    )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    seeds = list(map(int, options.seeds.split(",")))
    results, runs, small_patches, cnn = (
        Results(f"vit_{options.device}", options),
        [],
        [],
        [],
    )
    for seed in seeds:
        config = ImageClassificationConfig(seed=seed)
        runs.append(run_image_classification(config, device=options.device).metrics)
        cnn.append(run_cnn(config, options.device))
        small_patches.append(
            run_image_classification(
                config.replace(model="tiny, patches of 2"), device=options.device
            ).metrics
        )
        for name, last in (
            ("ViT", runs[-1]),
            ("CNN", cnn[-1]),
            ("ViT, patches of 2", small_patches[-1]),
        ):
            print(
                name,
                {
                    name: last[name]
                    for name in ("seed", "accuracy", "train_seconds", "parameters")
                },
                flush=True,
            )
    validation = {}
    for name, changes in TRIALS.items():
        trials = [
            run_image_classification(
                ImageClassificationConfig(validation=True, seed=seed, **changes),
                device=options.device,
            )
            for seed in seeds
        ]
        validation[name] = [trial.metrics["accuracy"] for trial in trials]
        print("validation,", name, validation[name], flush=True)
    print(
        "written to",
        results.save(
            runs=runs, small_patches=small_patches, cnn=cnn, validation=validation
        ),
    )
