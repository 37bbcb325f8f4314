"""What kraftwire shows of a real quorum, and a quorum of its own: run with ``make demo``.

Owns the choice and the words around it; what is printed comes from the program itself. The report
comes after it, from `tools.demo_report`, which needs Spark.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from kraftwire.cli.main import main as kraftwire
from tools.demo_quorum import show_quorum

__all__ = ["KEPT", "NEXT", "WIDTH", "main"]

CAPTURE = "tests/golden/captures/kraft_quorum.pcapng.xz"
WIDTH = 100

# Where the traffic of the quorum is kept, for its tables and for a look at it.
KEPT = Path("build/demo/quorum.pcap")


@dataclass(frozen=True, slots=True)
class Section:
    """A title, a few words before, and the arguments of the program."""

    title: str
    words: str
    arguments: tuple[str, ...]


SECTIONS = (
    Section(
        "1  Who led, who voted for whom, and what the metadata log said",
        """\
Three Kafka 4.3.1 controllers and a broker talked for eight minutes while somebody did them harm:
the leader was killed (+362.9 s), the next one stopped (+378.2), the one after that halted for
eight seconds (+393.3). Then a fourth controller joined by a snapshot, became a voter and was
removed. Nobody told the program so; this is what it makes of the packets.""",
        ("decode", CAPTURE, "--raft"),
    ),
    Section(
        "2  How often, how fast, which errors",
        """\
The time that a Fetch waits for records is taken apart from the time that the server needs.""",
        ("decode", CAPTURE, "--stats", "--top", "3"),
    ),
    Section(
        "3  One vote, byte by byte",
        """\
Node 3 asks node 1 to make it the leader of epoch 2, and node 1 does.""",
        (
            "decode", CAPTURE, "--bytes", "--api", "Vote",
            "--since", "1795206426.635", "--until", "1795206426.636",
        ),
    ),
)  # fmt: skip

NEXT = f"""\
Try next, with `.venv/bin` on your path:

  kraftwire decode {CAPTURE} --error any
  kraftwire decode {CAPTURE} --api 'Begin*,End*,Vote' -v
  kraftwire decode {CAPTURE} --format jsonl | head -1
  kraftwire decode tests/golden/logs/controller --raft
  kraftwire schema Vote
  kraftwire node start --config FILE       (kraftwire/node/README.md has three of them)
  kraftwire sim run --seeds 0-9
  tcpdump -U -w - port 9092 | kraftwire decode -
"""


def main() -> int:
    """Run all sections; returns the exit code."""
    if not Path(CAPTURE).exists():
        print(f"{CAPTURE} is not here; run this from the root of a checkout", file=sys.stderr)
        return 1
    for section in SECTIONS:
        print(f"\n{section.title}\n{'=' * len(section.title)}\n\n{section.words}\n")
        shown = " ".join(section.arguments)
        print(f"$ kraftwire {shown}\n", flush=True)
        code = kraftwire([*section.arguments, "--quiet"])
        if code:
            return code
    title = "4  A quorum of our own"
    print(f"\n{title}\n{'=' * len(title)}\n", flush=True)
    return show_quorum(KEPT)


if __name__ == "__main__":
    raise SystemExit(main())
