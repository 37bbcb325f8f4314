"""The siege again, of a quorum over SASL_SSL: also handshakes, passwords and tokens are attacks."""

from __future__ import annotations

from functools import partial

from tests.bench import siege

__all__ = ["run"]

run = partial(siege.run, is_secured=True)
