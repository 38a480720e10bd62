"""The knobs of a capsule: a widget that needs the weights of a decoder."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch

from capsnet import Decoder
from capsnet.checkpoint import quantized, write_tensors
from capsnet_book.play import Playable, pack
from capsnet_lab.figures.style import Figure

if TYPE_CHECKING:
    from capsnet_book.play.widget import Widget


class Knobs(Playable):
    """A figure with the data of its knobs. A page fetches the weights; a notebook is given them."""

    def __init__(self, figure: Figure, decoder: Decoder, **data: Any) -> None:
        super().__init__(figure, widget="knobs", **data)
        self.decoder = decoder

    def widget(self) -> "Widget":
        from capsnet_book.play.widget import widget

        with TemporaryDirectory() as folder:
            path = Path(folder, "decoder.safetensors")
            save_decoder(self.decoder, path)
            weights = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
        return widget(self.name, pack({**self.data, "weights": weights}))


def save_decoder(decoder: Decoder, path: Path) -> None:
    """A decoder alone, in 8 bits."""
    tensors, names = quantized(decoder.state_dict())
    write_tensors(path, tensors, {"int8": names})
