"""What the chapter gives the playground of routing."""

from capsnet.functional import dynamic_routing
from capsnet_book import parts
from capsnet_book.figures.parts import placed
from capsnet_book.play import lines

DATA = {
    "votes": parts.votes()[0],
    "scene": [placed(*part).tolist() for part in parts.scene()],
    "lines": lines(dynamic_routing, "c =", "s =", "v =", "b = b +"),
}
