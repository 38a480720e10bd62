"""``python -m capsnet``."""

import sys

from capsnet_lab.cli import main

sys.exit(main())
