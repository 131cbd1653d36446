"""`python -m fabinterp` is the command `fabinterp`."""

import sys

from fabinterp.cli import main

sys.exit(main())
