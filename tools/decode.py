"""`kraftwire decode` from a checkout that is not installed: ``python -m tools.decode FILE...``."""

from __future__ import annotations

import sys

from kraftwire.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["decode", *sys.argv[1:]]))
