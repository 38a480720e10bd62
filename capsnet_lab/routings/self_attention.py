"""Self-attention routing and Efficient-CapsNet, the small network that it comes from.

Source: V. Mazzia, F. Salvetti, M. Chiaberge, *Efficient-CapsNet: capsule network with
self-attention routing*, Scientific Reports 11, 2021, and the code that its authors released.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.checkpoint import register
from capsnet.checks import as_image_shape, as_int, check_predictions, check_prior, require_bool
from capsnet.functional import RoutingStep
from capsnet.layers import CapsuleLayer, Decoder, channels_to_capsules
from capsnet.model import CapsNet, CapsNetOutput


def exponential_squash(s: Tensor, dim: int = -1) -> Tensor:
    """(1 − e^{−‖s‖}) s / ‖s‖, of a length below 1; a short vector hardly changes.

    Shapes as :func:`capsnet.functional.squash`.
    """
    norm = torch.linalg.vector_norm(s, dim=dim, keepdim=True)
    norm = norm.clamp(min=torch.finfo(s.dtype).tiny)  # at 0 the factor is 1
    return s * (-torch.expm1(-norm) / norm)


def self_attention_routing(
    u_hat: Tensor, prior: Tensor | None = None, trace: list[RoutingStep] | None = None
) -> Tensor:
    """Routing by how a child's predictions agree with those of the other children, in one pass.

    For each parent j, A_j = Û_j Û_jᵀ / √d holds the agreement of every two children. C is the
    softmax over the parents of Σ_k A_ikj, and v_j = squash(Σ_i (C + B)_ij û_{j|i}), with
    :func:`exponential_squash`. A need not be formed: its sums are û_{j|i} · Σ_k û_{j|k} / √d.

    Args:
        u_hat: û_{j|i}, [batch, in_capsules, out_capsules, out_dim].
        prior: B, [in_capsules, out_capsules]; the paper's "log priors" are added to the shares,
            not to the logits, so that shares need not sum to 1.
        trace: a list that receives one :class:`RoutingStep`.

    Returns:
        v_j, [batch, out_capsules, out_dim].

    Raises:
        ValueError: ``u_hat`` is not a 4-D floating-point tensor, or ``prior`` has another shape
            than [in_capsules, out_capsules].
    """
    check_predictions("u_hat", u_hat)
    if prior is not None:
        check_prior(prior, u_hat)
    total = u_hat.sum(dim=1)  # Σ_k û_{j|k}, [batch, out_capsules, out_dim]
    logits = torch.einsum("nijd,njd->nij", u_hat, total) / math.sqrt(u_hat.shape[3])
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    c = F.softmax(logits, dim=2)
    if prior is not None:
        c = c + prior
    s = torch.einsum("nij,nijd->njd", c.to(u_hat.dtype), u_hat)
    v = exponential_squash(s)
    if trace is not None:
        trace.append(RoutingStep(logits, c, s, v))
    return v


class SelfAttentionCapsules(CapsuleLayer):
    """:class:`CapsuleLayer` with :func:`self_attention_routing`; it has a prior, and no iterations.

    Sizes, shapes and errors are those of :class:`CapsuleLayer`.
    """

    def __init__(self, in_capsules: int, in_dim: int, out_capsules: int, out_dim: int) -> None:
        super().__init__(in_capsules, in_dim, out_capsules, out_dim, learn_prior=True)

    def reset_parameters(self) -> None:
        """Draw W as the released code does: Keras's he_normal, cut at 2 standard deviations."""
        super().reset_parameters()
        std = math.sqrt(2 / self.weight[..., 0].numel()) / 0.8796  # of what is left by the cut
        nn.init.trunc_normal_(self.weight, std=std, a=-2 * std, b=2 * std)

    def forward(self, u: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        return self_attention_routing(self.predict(u), self.prior, trace)


@register
class EfficientCapsNet(nn.Module):
    """Efficient-CapsNet for MNIST, 161,824 parameters without the decoder.

    Four convolutions with ReLU and batch normalisation, 16 primary capsules of 8 numbers by a
    depthwise one, and a capsule of 16 numbers for each class by self-attention. It is called and
    trained as a :class:`CapsNet`, which it is not. It has no fast arrangement.

    Args:
        image_shape: [channels, height, width]; height and width of at least 27.
        num_classes: at least 1.
        reconstruct: have a decoder.

    Raises:
        ValueError: an argument is out of its range.
    """

    # These need of a network its arguments, three sizes, its digits and decoder, and an encode.
    config: Any = CapsNet.config
    check_images: Any = CapsNet.check_images
    read_out: Any = CapsNet.read_out
    routing_trace: Any = CapsNet.routing_trace

    def __init__(
        self,
        image_shape: Sequence[int] = (1, 28, 28),
        num_classes: int = 10,
        *,
        reconstruct: bool = True,
    ) -> None:
        super().__init__()
        require_bool("reconstruct", reconstruct)
        shape = as_image_shape(image_shape)
        # After the kernels 5, 3, 3 and, with stride 2, 3; then after the depthwise one of 9.
        grid = [(side - 11) // 2 + 1 - 8 for side in shape[1:]]
        if min(grid) < 1:
            raise ValueError(
                f"image_shape must be [channels, at least 27, at least 27], got {shape}"
            )
        self.image_shape = shape
        self.num_classes = as_int("num_classes", num_classes)
        self.capsule_dim = 16
        self.arguments: dict[str, Any] = {
            "image_shape": shape,
            "num_classes": self.num_classes,
            "reconstruct": reconstruct,
        }
        layers: list[nn.Module] = []
        before = shape[0]
        for channels, kernel_size, stride in ((32, 5, 1), (64, 3, 1), (64, 3, 1), (128, 3, 2)):
            conv = nn.Conv2d(before, channels, kernel_size, stride)
            nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
            # Keras's defaults, not PyTorch's
            layers += [conv, nn.ReLU(), nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)]
            before = channels
        self.conv = nn.Sequential(*layers)
        self.primary = nn.Conv2d(before, before, 9, groups=before)  # depthwise
        nn.init.xavier_uniform_(self.primary.weight)
        self.num_primary_capsules = 16 * math.prod(grid)
        self.digits = SelfAttentionCapsules(self.num_primary_capsules, 8, num_classes, 16)
        self.decoder = Decoder(num_classes, 16, shape) if reconstruct else None

    def encode(self, images: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        self.check_images(images)
        features = self.conv(images)  # [batch, 128, 9, 9] for MNIST
        # [batch, 16, 8]
        children = exponential_squash(channels_to_capsules(self.primary(features), 8))
        capsules: Tensor = self.digits(children, trace)  # [batch, 10, 16]
        return capsules

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        output: CapsNetOutput = self.read_out(self.encode(images), labels)
        return output
