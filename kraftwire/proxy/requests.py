"""The client's direction: requests, and the bare SASL tokens of old clients.

Order: a request is registered, and rules decide about it, before any byte of it is passed on.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache, partial

from kraftwire.capture.framing.headers import HEADER, HEADER_SIZE, client_id, produce_acks
from kraftwire.errors import WireError
from kraftwire.faults.rules import Decision, Need
from kraftwire.faults.selectors import RequestHead
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.payloads import (
    decode_request,
    encode_request,
    encode_response,
    peek_request,
)
from kraftwire.proxy.addresses import (
    answers_with_addresses,
    asks_with_addresses,
    rewrite_request,
)
from kraftwire.proxy.events import Side
from kraftwire.proxy.exchange import NO_API, Exchange
from kraftwire.proxy.frames import NOT_YET, FrameFlow, held
from kraftwire.proxy.responses import ResponseFlow
from kraftwire.proxy.state import ConnectionState
from kraftwire.wire.frame import LENGTH_SIZE, frame
from kraftwire.wire.message import Message

# API key, version, correlation id, and the length of a client id, which the first version of
# ControlledShutdown alone lacks.
_PAYLOAD_MIN = HEADER_SIZE - LENGTH_SIZE
# The acks of a Produce stand behind a transactional id and the tags of the header.
_ACKS_WITHIN_BYTES = 128 * 1024

# What has to be done about the requests of an API and version.
_PASS, _READ_ACKS, _HOLD, _HOLD_LOGIN = range(4)


@lru_cache(1024)
def _handling(api_key: int, api_version: int) -> tuple[int, bool]:
    """Return what has to be done about a request, and whether its response has to be read."""
    if api_key == ApiKey.ENVELOPE:
        return _HOLD, False
    if api_key in (ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS):
        return (_HOLD if api_key == ApiKey.SASL_HANDSHAKE else _PASS), True
    reads_response = answers_with_addresses(api_key, api_version)
    if api_key == ApiKey.PRODUCE:
        return _READ_ACKS, reads_response
    if api_key == ApiKey.SASL_AUTHENTICATE:
        return _HOLD_LOGIN, reads_response
    return (_HOLD if asks_with_addresses(api_key, api_version) else _PASS), reads_response


class RequestFlow(FrameFlow):
    """Passes requests on; `responses` is the other direction."""

    source, target = Side.CLIENT, Side.UPSTREAM

    def __init__(self, state: ConnectionState, responses: ResponseFlow) -> None:
        super().__init__(state)
        self._responses = responses
        # The client id of the last request as it was written, and the counter of its client.
        self._client: bytes | None = None
        self._id_size = -1
        self._counts = state.shared.traffic.client(None)
        # The request that is held, and whether rules decide about its body.
        self._exchange: Exchange | None = None
        self._needs_body = False
        self._has_rules = False
        # What goes on at the end of a rule: a request as it is sent, and as it is shown.
        self._waiting: tuple[Exchange, bytes, bytes | None] | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises: WireError as `_begin`."""
        self._has_rules = not self.is_mute and bool(self._state.shared.rules)
        super().feed(data)

    def resume(self) -> None:
        """Pass on a request whose rule has ended, and what follows it."""
        if self._waiting is not None:
            exchange, sent, shown = self._waiting
            if exchange.decision.rule in self._state.shared.rules:
                return
            self._waiting, self.is_waiting = None, False
            self._put(sent, shown)
        super().resume()

    def _begin(self, data: bytes, at: int, end: int, size: int) -> int:
        if self._state.tokens:
            return held(size)
        if size < _PAYLOAD_MIN:
            return LENGTH_SIZE + size
        if end - at < HEADER_SIZE:
            return NOT_YET
        _, kind, correlation_id, id_size = HEADER.unpack_from(data, at)
        api_key, api_version = kind >> 16, kind & 0xFFFF
        body = at + HEADER_SIZE + max(id_size, 0)
        stop = at + LENGTH_SIZE + size
        if end < body <= stop:
            return NOT_YET
        if id_size != self._id_size or data[at + HEADER_SIZE : body] != self._client:
            self._change_client(id_size, data[at + HEADER_SIZE : body])
        handling, reads_response = _handling(api_key, api_version)
        exchange = Exchange(api_key, api_version, correlation_id, reads_response=reads_response)
        if handling == _READ_ACKS:
            acks = produce_acks(data, body, min(end, stop), api_version)
            if acks is None and end < min(stop, at + _ACKS_WITHIN_BYTES):
                return NOT_YET
            exchange.has_response = acks != 0
        self._counts[api_key] += 1
        is_shown = handling == _HOLD_LOGIN and self._records
        exchange.reads_response = exchange.reads_response or is_shown
        is_held = handling == _HOLD or is_shown
        self._needs_body = False
        if self._has_rules:
            is_held = self._judge_head(exchange) or is_held
        if not self._needs_body:
            self._note(exchange)
        if is_held:
            self._exchange = exchange
            return held(size)
        self._register(exchange)
        return LENGTH_SIZE + size

    def _judge_head(self, exchange: Exchange) -> bool:
        """Let rules decide about a request's head; returns whether it has to be held."""
        need = self._state.shared.rules.need(self._head(exchange), self._state.now)
        self._needs_body = need is Need.BODY
        if need is Need.HEAD:
            self._decide(exchange, None)
        decision = exchange.decision
        is_last = decision.drop == "before" or decision.fault.black_hole is not None
        is_last = is_last or (decision.drop is not None and not exchange.has_response)
        return self._needs_body or decision.fault.holds_request or is_last

    def _decide(self, exchange: Exchange, body: Message | None) -> None:
        shared = self._state.shared
        exchange.decision = shared.rules.decide(
            self._head(exchange), self._state.now, body, partial(shared.topics.name, None)
        )

    def _note(self, exchange: Exchange) -> None:
        """Note a request about which rules have decided."""
        if self._state.shared.requests is not None:
            self._state.shared.requests.add(self._head(exchange), exchange.decision.rule)

    def _head(self, exchange: Exchange) -> RequestHead:
        name = None if self._id_size < 0 or self._client is None else client_id(self._client)
        return RequestHead(exchange.api_key, exchange.api_version, name, self._state.node)

    def _register(self, exchange: Exchange) -> None:
        if exchange.has_response and not self.is_mute:
            self._state.in_flight.append(exchange)

    def _change_client(self, id_size: int, raw: bytes) -> None:
        self._client, self._id_size = raw, id_size
        self._counts = self._state.shared.traffic.client(None if id_size < 0 else raw)

    def _whole(self, payload: bytes) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            self._pass_token(payload)
            return
        try:
            header, body, end = decode_request(payload)
        except WireError:
            # The node judges it.
            if self._needs_body:
                self._note(exchange)
            self._record(frame(payload))
            self._carry_out(exchange.decision)
            self._go(exchange, payload)
            return
        if self._needs_body:
            self._decide(exchange, body)
            self._note(exchange)
        decision = exchange.decision
        sent, shown = payload, None
        if isinstance(body, SaslAuthenticateRequest):
            shown = encode_request(header, _without_secret(body)) + payload[end:]
        self._record(frame(payload if shown is None else shown))
        self._carry_out(decision)
        if decision.answer is not None:
            self._answer(exchange, header, decision.answer)
            return
        if decision.request is not None:
            body = decision.request
            sent = encode_request(header, body)
        if isinstance(body, SaslHandshakeRequest):
            exchange.mechanism = body.mechanism
        elif isinstance(body, EnvelopeRequest):
            _look_inside(exchange, body)
        elif rewrite_request(body, self._state.role, self._state.shared.find_here):
            sent = encode_request(header, body) + payload[end:]
        self._go(exchange, sent, shown)

    def _carry_out(self, decision: Decision) -> None:
        """End the connection before a request is passed on, or pass nothing on any more."""
        direction = decision.fault.black_hole
        if decision.drop == "before":
            self._state.is_closed = True
            self.die()
        elif direction is not None:
            self.is_mute = direction != "to_client"
            self._responses.is_mute = direction != "to_server"

    def _go(self, exchange: Exchange, sent: bytes, shown: bytes | None = None) -> None:
        """Pass a request on that was held, now or at the end of its rule."""
        if self.is_dead:
            return
        self._register(exchange)
        if exchange.decision.fault.holds_request:
            self._waiting, self.is_waiting = (exchange, sent, shown), True
            return
        self._put(sent, shown)
        if exchange.decision.drop is not None and not exchange.has_response:
            self._state.is_closed = True
            self.die()

    def _answer(self, exchange: Exchange, header: RequestHeader, answer: Message) -> None:
        """Answer a request without passing it on."""
        own = ResponseHeader(correlation_id=header.correlation_id)
        exchange.answer = encode_response(own, answer, exchange.api_version)
        self._register(exchange)
        self._responses.answer()

    def _pass_token(self, payload: bytes) -> None:
        self._state.tokens -= 1
        self._state.in_flight.append(Exchange(NO_API, NO_API, 0, reads_response=True))
        self._record(frame(bytes(len(payload))))
        self._put(payload, bytes(len(payload)))


def _look_inside(exchange: Exchange, body: EnvelopeRequest) -> None:
    """Note what an Envelope carries; the node judges one that cannot be read."""
    with suppress(WireError):
        exchange.carried = peek_request(body.request_data)
        exchange.reads_response = answers_with_addresses(*exchange.carried)


def _without_secret(body: SaslAuthenticateRequest) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=bytes(len(body.auth_bytes)))
