"""``python -m kraftwire``: the program without its console script."""

from __future__ import annotations

from kraftwire.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
