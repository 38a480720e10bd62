"""``python -m capsnet``."""

import sys

from capsnet.cli import main

sys.exit(main())
