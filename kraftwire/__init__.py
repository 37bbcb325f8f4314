"""Apache Kafka's KRaft protocol in Python: byte-exact messages, records, captures and logs.

Importing the package loads no message; import what you need, for example
``from kraftwire.messages.vote_request import VoteRequest``.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from kraftwire import messages

__version__ = "0.1.0"
__all__ = ["__version__", "messages"]


def __getattr__(name: str) -> ModuleType:
    # Loaded on first use, so that the generator of the message modules can import the layers below.
    if name == "messages":
        return import_module("kraftwire.messages")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
