"""Shows what kraftwire does, in a minute: run with ``make demo``.

It starts a quorum, kills its leader, and shows the packets. Owns the order of the parts and the
text around them; the rest of the output comes from the program itself. Tables and a report come
after it, from `tools.demo_report`, which needs Spark.
"""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path

CAPTURE = "tests/golden/captures/kraft_quorum.pcapng.xz"
WIDTH = 100

# Where the traffic of the quorum is kept, for its tables and for a look at it.
KEPT = Path("build/demo/quorum.pcap")

NEXT = f"""\
Try next, with `.venv/bin` on your path:

  kraftwire decode {KEPT} --api Vote -v
  kraftwire story raft {CAPTURE}
                                           (eight bad minutes of Kafka's own controllers)
  kraftwire sim run --seeds 0-9
  kraftwire node start FILE                (docs/nodes.md has three of them)
  tcpdump -U -w - port 9092 | kraftwire decode -
"""


@dataclass(frozen=True, slots=True)
class _Vote:
    """A vote that was requested and granted; `answer` is the response with its header."""

    candidate: int
    epoch: int
    version: int
    answer: bytes


def main() -> int:
    """Run all parts; returns the exit code."""
    if not Path(CAPTURE).exists():
        print(f"{CAPTURE} is missing; run this from the root of a checkout", file=sys.stderr)
        return 1
    print_title("1  A quorum loses its leader")
    # Slow to import, and the first line should not wait for it.
    from tools.demo_quorum import show_quorum

    return show_quorum(KEPT) or show_vote(KEPT) or _show_statistic(KEPT)


def print_title(title: str) -> None:
    """Print the title of a part."""
    print(f"\n== {title} {'=' * (WIDTH - len(title) - 4)}\n", flush=True)


def show_vote(capture: Path) -> int:
    """Print one answer to a vote request, byte by byte."""
    print_title("2  One vote, byte by byte")
    vote = _last_vote(capture)
    if vote is None:
        print(f"no vote was granted in {capture}", file=sys.stderr)
        return 1
    print(f"Node {vote.candidate} requested votes for epoch {vote.epoch}. This one was granted:\n")
    from kraftwire.cli.main import main as kraftwire

    answer = capture.with_name("vote.hex")
    answer.write_text(f"{vote.answer.hex()}\n")
    arguments = [
        "decode", str(answer), "--bytes", "--input", "hex",
        "--response", "--api", "Vote", "--version", str(vote.version),
    ]  # fmt: skip
    print(f"$ kraftwire {' '.join(arguments)}\n", flush=True)
    return kraftwire([*arguments, "--quiet"])


def _last_vote(capture: Path) -> _Vote | None:
    """Return the last vote that was granted for a new epoch, so not a pre-vote."""
    import kraftwire.decode
    from kraftwire.decode import FilterOptions, Options
    from kraftwire.messages.vote_request import VoteRequest
    from kraftwire.messages.vote_response import VoteResponse

    found = None
    options = Options(filters=FilterOptions(api=("Vote",)))
    for exchange in kraftwire.decode.exchanges(capture, options=options):
        request, answer = exchange.request_body, exchange.response_body
        if not isinstance(request, VoteRequest) or not isinstance(answer, VoteResponse):
            continue
        response = exchange.response
        if response is None or not request.topics or not answer.topics:
            continue
        wanted, given = request.topics[0].partitions[0], answer.topics[0].partitions[0]
        if given.vote_granted and not wanted.pre_vote:
            version, data = response.api_version or 0, bytes(response.data)
            found = _Vote(wanted.replica_id, wanted.replica_epoch, version, data)
    return found


def _show_statistic(capture: Path) -> int:
    """Print how long answers took, with waits for records counted separately."""
    print_title("3  How fast: the server's own time, and what a Fetch waited for records")
    from kraftwire.cli.main import main as kraftwire

    arguments = ["stats", str(capture), "--api", "Fetch,Vote", "--error", "none"]
    print(f"$ kraftwire {' '.join(arguments)} | sed -n '/^By API/,/^$/p'\n", flush=True)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = kraftwire([*arguments, "--quiet"])
    after = dropwhile(lambda line: not line.startswith("By API"), out.getvalue().splitlines())
    print("\n".join(takewhile(bool, after)))
    return code


if __name__ == "__main__":
    raise SystemExit(main())
