"""The plain CNN of the front page, which answers beside the capsule network."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from capsnet import CapsNetOutput
from capsnet.checkpoint import register


@register
class PlainCNN(nn.Module):
    """Two convolutions with stride 2 and two dense layers, each but the last followed by a ReLU.

    Images [batch, *image_shape] → logits as ``lengths``, [batch, num_classes], and as capsules with
    one component; there is no reconstruction.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int] = (1, 28, 28),
        num_classes: int = 10,
        kernel_size: int = 5,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "image_shape": list(image_shape),
            "num_classes": num_classes,
            "kernel_size": kernel_size,
        }
        channels, *sides = image_shape
        for _ in range(2):
            sides = [(side - kernel_size) // 2 + 1 for side in sides]
        self.conv1 = nn.Conv2d(channels, 16, kernel_size, stride=2)
        self.conv2 = nn.Conv2d(16, 64, kernel_size, stride=2)
        self.fc1 = nn.Linear(64 * sides[0] * sides[1], 64)
        self.fc2 = nn.Linear(64, num_classes)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        features = F.relu(self.conv2(F.relu(self.conv1(images))))
        logits = self.fc2(F.relu(self.fc1(features.flatten(1))))
        return CapsNetOutput(capsules=logits.unsqueeze(2), lengths=logits, reconstruction=None)
