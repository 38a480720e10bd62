"""One setting of the C library's allocator."""

import ctypes
import sys

# mallopt's parameters, from glibc's malloc.h
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4


def keep_freed_memory() -> bool:
    """Have malloc keep what is freed, to the end of the process; False where that is not glibc's.

    Otherwise glibc hands large blocks back to the system at once, and gets them anew, page by page
    and zeroed, in the next step of the training. A process then holds its peak memory to its end.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library, such as musl
        return False
    settings = {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: 2**31 - 1, M_TOP_PAD: 64 * 2**20}
    return all(mallopt(name, value) == 1 for name, value in settings.items())
