"""The command line: ``capsnet train | evaluate | predict | export | check``.

Bad input ends in one line on stderr and exit code 2. What can be refused without PyTorch, which
takes seconds to import, is refused before it is imported.
"""

import argparse
import io
import logging
import os
import sys
import warnings
from collections.abc import Sequence

from capsnet_lab.cli.arguments import check_arguments
from capsnet_lab.cli.options import LONGEST, one_line, parse_arguments

INTERRUPTED = 130  # the exit code after Ctrl-C, as a shell's
BROKEN_PIPE = 141  # the exit code where the reader of our output has gone, as with `| head`
ESCAPED = "backslashreplace"  # how what is not UTF-8 in a name is printed, as on stderr


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: the words after ``capsnet``. None is for the command itself: its words are those of
            the process, which is ours, so its allocator, log and stdout are set as suits us.
    """
    args = parse_arguments(argv)
    if args.debug:
        return run(args, own_process=argv is None)
    try:
        code = run(args, own_process=argv is None)
        if sys.stdout is not None:  # it is None where it was closed
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # what is left to be printed goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (ValueError, OSError, RuntimeError, OverflowError, MemoryError, ImportError) as error:
        # torch says "out of memory" and more in RuntimeErrors of many lines. A ValueError is ours,
        # and may list all pictures that cannot be read.
        longest = sys.maxsize if isinstance(error, ValueError) else LONGEST
        message = one_line(str(error), longest) or type(error).__name__
        if "torchinductor" in message:  # its cache, in which a killed run may leave half a file
            message += "; remove this cache of torch.compile, or give --no-compile"
        print(f"capsnet {args.command}: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        advice = "; the same command continues after the last finished epoch"
        advice *= args.command == "train"
        print(f"capsnet {args.command}: interrupted{advice}", file=sys.stderr)
        return INTERRUPTED


def run(args: argparse.Namespace, own_process: bool) -> int:
    check_arguments(args)
    if own_process:
        set_up_process()
    from capsnet.pretrained import weights_file
    from capsnet_lab.cli import commands

    if isinstance(getattr(args, "weights", None), str):
        args.weights = weights_file(args.weights)
    return getattr(commands, args.command)(args)


def set_up_process() -> None:
    """Set what holds for the whole process: only where it runs nothing but our command."""
    from capsnet_lab.cli.allocator import keep_freed_memory

    keep_freed_memory()
    logging.getLogger("PIL").setLevel(logging.CRITICAL)  # a damaged picture gets our line alone
    warnings.filterwarnings("ignore", module="PIL")
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors=ESCAPED)
