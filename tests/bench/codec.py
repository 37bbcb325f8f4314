"""Decoding and encoding messages against kio, kafka-python and aiokafka, on identical bytes.

Only what both sides can do is compared, and every codec first proves that encoding what it
decoded gives the same bytes again, so that none is measured doing less.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.corpus import Item, load
from tests.bench.engines import OURS, enter
from tests.bench.measure import Contest, contest, geometric_mean
from tests.bench.peers import PEERS, Codec, ours
from tests.bench.report import Bar, microseconds, print_bars, print_table, ratio

__all__ = ["run"]

# The floor of each figure, with the engine in C and without: where there is none, it is not held.
FLOORS = {
    "engine": {
        "encode / best Python peer, mean": 18,
        "encode / best Python peer, worst but Produce": 4,
        "decode / kafka-python, mean": 6.5,
        "decode / kafka-python, worst": 3,
        "decode / kio, mean": 2.2,
        "decode / kio, worst": 1,
    },
    "pure": {"encode / best Python peer, mean": 3, "decode / kafka-python, mean": 1.3},
}


@dataclass(frozen=True, slots=True)
class Result:
    """The measurements of one item and one operation."""

    item: Item
    operation: str
    contest: Contest

    def speed_up(self, ours: str, peer: str) -> float | None:
        """How many times as fast as a peer ours is; None if the peer cannot do this."""
        return self.contest.ratio(ours, peer) if peer in self.contest.rounds else None

    def speed_up_best(self, ours: str) -> float:
        """How many times as fast as the fastest peer ours is."""
        return min(each for peer in PEERS if (each := self.speed_up(ours, peer)) is not None)


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    results = [each for item in load() if item.kind == "message" for each in _measure(item)]
    _print(results)
    bars = [bar for name in OURS for bar in _bars(name, results)]
    return print_bars("Messages: summary (means are geometric)", bars)


def _measure(item: Item) -> list[Result]:
    codecs = dict.fromkeys(OURS, ours(item))
    for name, adapter in PEERS.items():
        codec = adapter(item)
        if codec is not None:
            codecs[name] = codec
    for name, codec in codecs.items():
        enter(name)
        _verify(name, codec, item)
    decoders = {name: each.decode for name, each in codecs.items()}
    encoders = {name: each.encode for name, each in codecs.items()}
    return [
        Result(item, "decode", contest(decoders, enter)),
        Result(item, "encode", contest(encoders, enter)),
    ]


def _verify(name: str, codec: Codec, item: Item) -> None:
    if bytes(codec.encode()) != item.data:
        raise AssertionError(f"{name} does not reproduce the bytes of {item.name}")


def _print(results: list[Result]) -> None:
    rows = []
    for result in results:
        best = [microseconds(result.contest.best(name)) for name in (*OURS, *PEERS)]
        ratios = [ratio(result.speed_up(name, peer)) for name in OURS for peer in PEERS]
        item = result.item
        rows.append((item.name, f"{len(item.data):,}", result.operation, *best, *ratios))
    compared = [f"{name[0].upper()} x {peer}" for name in OURS for peer in PEERS]
    columns = ("item", "bytes", "op", *OURS, *PEERS, *compared)
    print_table("Messages: CPU microseconds per call, then how many times faster", columns, rows)


def _bars(name: str, results: list[Result]) -> list[Bar]:
    # A Produce of 100 KiB in one field is almost entirely copying, which is the same for all.
    encodes = [r for r in results if r.operation == "encode"]
    decodes = [r for r in results if r.operation == "decode"]
    made = [r.speed_up_best(name) for r in encodes]
    apart = [r.speed_up_best(name) for r in encodes if not _is_mostly_copied(r.item)]
    python = [s for r in decodes if (s := r.speed_up(name, "kafka-python")) is not None]
    compiled = [s for r in decodes if (s := r.speed_up(name, "kio")) is not None]
    figures = {
        "encode / best Python peer, mean": geometric_mean(made),
        "encode / best Python peer, worst but Produce": min(apart),
        "decode / kafka-python, mean": geometric_mean(python),
        "decode / kafka-python, worst": min(python),
        "decode / kio, mean": geometric_mean(compiled),
        "decode / kio, worst": min(compiled),
    }
    return [Bar(f"{name}: {each}", figures[each], floor) for each, floor in FLOORS[name].items()]


def _is_mostly_copied(item: Item) -> bool:
    return item.message == "ProduceRequest" and len(item.data) > 90_000
