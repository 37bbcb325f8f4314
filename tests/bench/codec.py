"""Decoding and encoding messages against kio, kafka-python and aiokafka, on identical bytes.

Only what both sides can do is compared, and every codec first proves that encoding what it
decoded gives the same bytes again, so that nobody is measured doing less.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.corpus import Item, load
from tests.bench.measure import Contest, contest, geometric_mean
from tests.bench.peers import PEERS, Codec, ours
from tests.bench.report import Bar, microseconds, print_bars, print_table, ratio

__all__ = ["run"]

OURS = "kraftwire"
# kio's decoder is compiled (its encoder is not). These messages are large enough for a plan of
# the whole array to pay, so there the goal is to be ahead of it.
AHEAD_OF_COMPILED = ("FetchResponse", "MetadataResponse")


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of one item and one operation."""

    item: Item
    operation: str
    contest: Contest

    def speed_up(self, peer: str) -> float | None:
        """How many times as fast as a peer we are, None if it cannot do this."""
        return self.contest.ratio(OURS, peer) if peer in self.contest.rounds else None

    def speed_up_best(self) -> float:
        """How many times as fast as the fastest peer we are."""
        return min(each for peer in PEERS if (each := self.speed_up(peer)) is not None)


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    results = [each for item in load() if item.kind == "message" for each in _measure(item)]
    _print(results)
    return print_bars("Messages: summary (means are geometric)", _bars(results))


def _measure(item: Item) -> list[Result]:
    codecs = {OURS: ours(item)}
    for name, adapter in PEERS.items():
        codec = adapter(item)
        if codec is not None:
            codecs[name] = codec
    for name, codec in codecs.items():
        _verify(name, codec, item)
    return [
        Result(item, "decode", contest({name: each.decode for name, each in codecs.items()})),
        Result(item, "encode", contest({name: each.encode for name, each in codecs.items()})),
    ]


def _verify(name: str, codec: Codec, item: Item) -> None:
    if bytes(codec.encode()) != item.data:
        raise AssertionError(f"{name} does not reproduce the bytes of {item.name}")


def _print(results: list[Result]) -> None:
    rows = []
    for result in results:
        best = [microseconds(result.contest.best(name)) for name in (OURS, *PEERS)]
        ratios = [ratio(result.speed_up(name)) for name in PEERS]
        item = result.item
        rows.append((item.name, f"{len(item.data):,}", result.operation, *best, *ratios))
    columns = ("item", "bytes", "op", "ours", *PEERS, *(f"x {name}" for name in PEERS))
    print_table("Messages: CPU microseconds per call, then how many times faster", columns, rows)


def _bars(results: list[Result]) -> list[Bar]:
    encodes = [r.speed_up_best() for r in results if r.operation == "encode"]
    decodes = [r for r in results if r.operation == "decode"]
    python = [s for r in decodes if (s := r.speed_up("kafka-python")) is not None]
    compiled = {r.item: s for r in decodes if (s := r.speed_up("kio")) is not None}
    bars = [
        Bar("encode / best Python peer, mean", geometric_mean(encodes), 8, 10),
        Bar("encode / best Python peer, worst item", min(encodes), 4),
        Bar("decode / kafka-python, mean", geometric_mean(python), 2.7, 3),
        Bar("decode / kafka-python, worst item", min(python), 1.4),
        Bar("decode / kio's compiled decoder, mean", geometric_mean(compiled.values()), 0.7, 0.8),
    ]
    for message in AHEAD_OF_COMPILED:
        worst = min(value for item, value in compiled.items() if item.message == message)
        bars.append(Bar(f"decode / kio, {message}, worst item", worst, 0.7, 1))
    return bars
