"""``python -m tools.record_load FILE [--megabytes N]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tools.record_load.load import record

# Frames of clients that keep up are smaller than this on average; a busy machine needs more time.
MEAN_SIZE_MAX = 8_000
RATES = (1.0, 0.5, 0.25)


def main(arguments: list[str] | None = None) -> int:
    """Record a capture and print its contents."""
    parser = argparse.ArgumentParser(prog="python -m tools.record_load", description=__doc__)
    parser.add_argument("file", type=Path, help="the pcap file to write")
    parser.add_argument("--megabytes", type=int, default=220, help="its size (default: 220)")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    # Written under another name and renamed, so that a broken recording never looks complete.
    options.file.parent.mkdir(parents=True, exist_ok=True)
    part = options.file.with_suffix(".part")
    for rate in RATES:
        with tempfile.TemporaryDirectory(prefix="record-load-") as folder:
            capture, mix = record(part, options.megabytes * 1_000_000, Path(folder), rate=rate)
        if mix.mean_size < MEAN_SIZE_MAX:
            break
        print(f"{mix.mean_size:,.0f} bytes per frame: the machine is too busy for this rate")
    part.rename(options.file)
    print("\n".join(mix.lines()))
    print(
        f"{options.file}: {capture.size / 1e6:.1f} MB, {capture.packet_count:,} packets, "
        f"recorded in {time.monotonic() - start:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
