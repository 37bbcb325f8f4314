"""`kraftwire proxy` beside a plain relay and toxiproxy: what each adds, lets through and needs."""

from __future__ import annotations

from tests.bench.proxy.run import run

__all__ = ["run"]
