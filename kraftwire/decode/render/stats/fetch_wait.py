"""The wait of a Fetch under its former name; it is at home in `kraftwire.decode.exchange.wait`."""

from __future__ import annotations

from kraftwire.decode.exchange.wait import FETCH_APIS, wait_ms

__all__ = ["FETCH_APIS", "wait_ms"]
