"""`python -m devhost`: the same as the command `devhost`."""

import sys

from devhost.cli import main

sys.exit(main())
