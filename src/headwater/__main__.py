"""`python -m headwater`: the same as the `headwater` command."""

import sys

from headwater.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
