"""Apache Kafka's KRaft protocol in Python: byte-exact messages, records, captures and logs.

Importing the package loads nothing else; import what you need, for example
``from kraftwire.messages.vote_request import VoteRequest``.
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
