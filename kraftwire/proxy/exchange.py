"""One request on its way, until its response has been passed on."""

from __future__ import annotations

from kraftwire.faults.rules import PASS, Decision

# The API key of a bare SASL token.
NO_API = -1


class Exchange:
    """A request, which waits for its response if `has_response`.

    `answer` is the payload that the proxy sends as the response, if it makes one. `reads_response`
    says that the response has to be understood. `due` is when it may pass, None before it is there.
    `mechanism` is that of a SaslHandshake, `carried` what an Envelope carries: API key and version.
    """

    __slots__ = (
        "answer", "api_key", "api_version", "carried", "correlation_id", "decision", "due",
        "has_response", "mechanism", "reads_response",
    )  # fmt: skip

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        *,
        reads_response: bool = False,
        has_response: bool = True,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.reads_response = reads_response
        self.has_response = has_response
        self.answer: bytes | None = None
        self.decision: Decision = PASS
        self.due: float | None = None
        self.mechanism = ""
        self.carried = NO_API, NO_API
