"""Apache Kafka's KRaft protocol in Python: byte-exact messages, records, captures and logs.

Importing the package loads what all messages share, and no message; import what you need, for
example ``from kraftwire.messages.vote_request import VoteRequest``.
"""

from kraftwire import messages

__version__ = "0.1.0"
__all__ = ["__version__", "messages"]
