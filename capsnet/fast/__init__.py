"""The same network arranged for speed.

Same parameters, same equations, full gradients: only the order of the arithmetic, and with it the
rounding, and the layout of the memory differ from :mod:`capsnet.model`, which is the one to read.
Two layers take nearly all of the time, and each has its module: :mod:`capsnet.fast.convolution` and
:mod:`capsnet.fast.routing`. On CUDA the routing has kernels of its own, :mod:`capsnet.fast.fused`.
"""

from capsnet.fast.fast_capsnet import ARRANGEMENTS, FAST_DEVICES, FastCapsNet, arrange

__all__ = ["ARRANGEMENTS", "FAST_DEVICES", "FastCapsNet", "arrange"]
