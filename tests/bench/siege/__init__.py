"""How attacks affect a quorum that an honest client uses: latency, elections, memory, recovery."""

from tests.bench.siege.run import run

__all__ = ["run"]
