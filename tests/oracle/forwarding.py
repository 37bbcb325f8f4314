"""Requests in any version, and those of clients as a broker forwards them: in an Envelope.

Owns which requests brokers forward, and what an older version of a request has to say instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraftwire.messages import API_NAMES
from kraftwire.node.handlers.envelope import FORWARDED
from kraftwire.node.handlers.versions import CONTROLLER_VERSIONS
from kraftwire.security.principal import ANONYMOUS, Principal, encode_principal

ADDRESS = bytes((10, 0, 0, 1))

# Scripts wait for a new leader with this request, and look at its answer's errors.
_NAMES = {API_NAMES[key] for key in FORWARDED} - {"DescribeQuorum"}


class Sender:
    """A connection of `ctlfuzz`, over which an operation may ask in another way.

    `way` is None for requests as they are; a number chooses their versions, and those of clients
    are then forwarded, as requests of `principal`.
    """

    def __init__(self, proto: Any, keys: Mapping[str, int], connection: Any) -> None:
        self.way: int | None = None
        self.principal = ANONYMOUS
        self._proto, self._keys = proto, keys
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def call(self, name: str, version: int, body: dict[str, Any]) -> Any:
        """Return an answer."""
        if self.way is None:
            return self._connection.call(name, version, body)
        version = self._version(name, version, body)
        if name not in _NAMES:
            return self._connection.call(name, version, body)
        told = self.forward(name, version, _in_version(name, version, body), self.principal)
        if isinstance(told, int):
            return {"ErrorCode": told}
        return {key: value for key, value in told.items() if key != "_trailing" or value}

    def _version(self, name: str, version: int, body: dict[str, Any]) -> int:
        assert self.way is not None
        if any(each["Name"] is None for each in body.get("Topics") or () if "Name" in each):
            return version  # only the newest one has ids
        low, high = CONTROLLER_VERSIONS[self._keys[name]]
        return low + self.way % (high - low + 1)

    def forward(
        self, name: str, version: int, body: dict[str, Any], principal: Principal = ANONYMOUS
    ) -> Any:
        """Forward a request; returns the answer in the envelope, or the envelope's error."""
        key = self._keys[name]
        frame = self._proto.req_frame(key, version, 7, "client", body)
        return self.opened(key, version, self.envelope(frame[4:], encode_principal(principal)))

    def envelope(self, data: bytes, principal: bytes, address: bytes = ADDRESS) -> Any:
        """Send an envelope; returns its answer."""
        body = {
            "RequestData": data,
            "RequestPrincipal": principal,
            "ClientHostAddress": address,
        }
        return self._connection.call("Envelope", 0, body)

    def opened(self, key: int, version: int, answer: dict[str, Any]) -> Any:
        """Return what an envelope holds, or its error."""
        if answer["ErrorCode"]:
            assert answer["ResponseData"] is None, answer
            return answer["ErrorCode"]
        correlation, told = self._proto.parse_resp(key, version, answer["ResponseData"])
        assert correlation == 7, correlation
        return told


def _in_version(name: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
    """Return a request with the fields that a version has instead of newer ones."""
    if name == "DeleteTopics" and version < 6:
        names = [topic["Name"] for topic in body["Topics"]]
        return {"TopicNames": names, "TimeoutMs": body["TimeoutMs"]}
    return body
