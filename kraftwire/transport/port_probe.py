"""Probes which protocol a port speaks, for the line that explains a failed connection.

A SaslHandshake for no mechanism is answered by every listener of Kafka: one with SASL names its
mechanisms, one without says that the request is out of place. No secret is sent, and nothing that
is learned here is trusted.

Source: SEC-S3, SEC-S10, SEC-T16.
"""

from __future__ import annotations

import contextlib
import ssl
from dataclasses import dataclass

import trio

from kraftwire.errors import ApiError, WireError
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.security.settings import PLAINTEXT, SASL_PLAINTEXT, SASL_SSL, SSL
from kraftwire.security.tls import unverified_tls
from kraftwire.wire.frame import FrameBuffer, frame

# A probe must not delay the end of a command noticeably.
_SECONDS = 1.5
_READ_BYTES = 64 * 1024
_ANSWER_BYTES_MAX = 64 * 1024
_VERSION = 1


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The protocol of a port, None if it is not known, and its SASL mechanisms.

    `certificate` is in DER, None without TLS.
    """

    protocol: str | None = None
    mechanisms: tuple[str, ...] = ()
    certificate: bytes | None = None

    def __str__(self) -> str:
        if not self.mechanisms:
            return str(self.protocol)
        return f"{self.protocol} ({', '.join(self.mechanisms)})"


async def probe_port(host: str, port: int, *, is_tls: bool) -> ProbeResult:
    """Probe a port, with or without TLS; what is not known in time stays empty."""
    found = ProbeResult()
    with trio.move_on_after(_SECONDS), contextlib.suppress(OSError, UnicodeError):
        plain = await trio.open_tcp_stream(host, port)
        try:
            stream: trio.abc.Stream = plain
            if is_tls:
                secured = trio.SSLStream(plain, unverified_tls(), https_compatible=True)
                stream = secured
                await secured.do_handshake()
                found = ProbeResult(certificate=secured.getpeercert(binary_form=True))
            protocol, mechanisms = await _answer(stream, is_tls=is_tls)
            found = ProbeResult(protocol, mechanisms, found.certificate)
        except (trio.BrokenResourceError, ssl.SSLError, WireError, ApiError):
            pass
        finally:
            await trio.aclose_forcefully(plain)
    return found


async def _answer(stream: trio.abc.Stream, *, is_tls: bool) -> tuple[str | None, tuple[str, ...]]:
    message = SaslHandshakeRequest(mechanism="")
    header = RequestHeader(
        request_api_key=message.API_KEY,
        request_api_version=_VERSION,
        correlation_id=0,
        client_id="",
    )
    await stream.send_all(frame(encode_request(header, message)))
    frames = FrameBuffer(limit=_ANSWER_BYTES_MAX)
    while True:
        data = bytes(await stream.receive_some(_READ_BYTES))
        for payload in frames.feed(data):
            _, found, _ = decode_response(payload, message.API_KEY, _VERSION)
            assert isinstance(found, SaslHandshakeResponse)
            if found.error_code == ErrorCode.ILLEGAL_SASL_STATE:
                return (SSL if is_tls else PLAINTEXT), ()
            return (SASL_SSL if is_tls else SASL_PLAINTEXT), tuple(found.mechanisms)
        if not data:
            return None, ()
