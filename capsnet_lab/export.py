"""ONNX export, checked against PyTorch before the file is kept."""

import copy
from pathlib import Path

import torch
from torch import Tensor, nn

from capsnet.files import write_atomically
from capsnet.model import CapsNet
from capsnet.text import reason

OUTPUTS = ("lengths", "capsules", "reconstruction")
TOLERANCE = 1e-4  # between onnxruntime and PyTorch


class _Outputs(nn.Module):
    """The network, returning those of OUTPUTS that it has, in this order."""

    def __init__(self, model: CapsNet) -> None:
        super().__init__()
        self.model = model
        self.names = OUTPUTS if model.decoder is not None else OUTPUTS[:2]

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        out = self.model(images)
        return tuple(getattr(out, name) for name in self.names)


def export_onnx(model: CapsNet, path: str | Path) -> float:
    """Write a network, on the CPU, as one ONNX file, for any batch size.

    Input "images" [batch, channels, height, width], float32 in 0 … 1; outputs "lengths",
    "capsules" and, with a decoder, "reconstruction" of the longest capsule.

    Returns:
        the largest absolute difference found, over random images in batches of 1 and 3.

    Raises:
        ModuleNotFoundError: onnx, onnxscript or onnxruntime is not installed.
        OSError: the file cannot be written.
        RuntimeError: onnxruntime cannot run the network, or differs from PyTorch by more than
            TOLERANCE; nothing is written.
    """
    import onnxruntime

    network = _Outputs(copy.deepcopy(model).float()).eval()  # the model keeps its mode
    shape = model.image_shape
    generator = torch.Generator().manual_seed(0)
    batches = [torch.rand(size, *shape, generator=generator) for size in (1, 3)]
    with torch.no_grad():
        expected = [network(images) for images in batches]
        program = torch.onnx.export(
            network,
            (batches[1],),
            input_names=["images"],
            output_names=list(network.names),
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    data = program.model_proto.SerializeToString()

    try:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        results = [session.run(None, {"images": images.numpy()}) for images in batches]
    except Exception as error:  # all that onnxruntime's own have in common
        raise RuntimeError(f"onnxruntime cannot run the network: {reason(error)}") from error
    difference = torch.stack([  # a NaN is the largest
        (torch_output - torch.from_numpy(onnx_output)).abs().max()
        for pair in zip(expected, results, strict=True)
        for torch_output, onnx_output in zip(*pair, strict=True)
    ]).max().item()  # fmt: skip
    if not difference <= TOLERANCE:
        raise RuntimeError(
            f"the ONNX network differs from PyTorch by {difference:.2g}, more than {TOLERANCE:.2g}"
        )
    write_atomically(path, data)
    return difference
