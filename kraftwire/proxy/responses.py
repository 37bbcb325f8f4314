"""The node's direction: responses, in the order of the requests.

A response that a rule delays or holds keeps back those behind it, as Kafka's own order does.
"""

from __future__ import annotations

import struct

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_response, decode_response_header, encode_response
from kraftwire.protocol.versions import answered_version
from kraftwire.proxy.addresses import LOOKED_THROUGH, STREAMED, rewrite_response
from kraftwire.proxy.events import Data, Say, Send, Side, WakeAt
from kraftwire.proxy.exchange import NO_API, Exchange
from kraftwire.proxy.frames import NOT_YET, FrameFlow, held
from kraftwire.proxy.hints import HintsFilter
from kraftwire.proxy.pace import Pace
from kraftwire.proxy.state import ConnectionState
from kraftwire.security.credentials import GSSAPI, OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512
from kraftwire.wire.frame import LENGTH_SIZE, frame
from kraftwire.wire.message import Message

# An answer of this size is held until its hints at the end are known; of a longer one they are
# hidden.
HELD_BYTES_MAX = 1024 * 1024
_HEAD = struct.Struct(">ii")
_CORRELATION_ID_SIZE = 4
# How many bare tokens a client sends after a SaslHandshake of version 0.
_TOKENS = {PLAIN: 1, SCRAM_SHA_256: 2, SCRAM_SHA_512: 2, OAUTHBEARER: 1}
_NO_KERBEROS = (
    "a client wants to log in by GSSAPI, which cannot pass: its ticket is for the host that it "
    "connects to; the answer to it lists the other mechanisms"
)


class ResponseFlow(FrameFlow):
    """Passes responses on, with the proxy's addresses in them."""

    source, target = Side.UPSTREAM, Side.CLIENT

    def __init__(self, state: ConnectionState) -> None:
        super().__init__(state)
        # A response that is sent slowly, and whether the connection ends after this one.
        self._pace: Pace | None = None
        self._is_last = False
        # A response that is held until it may pass: as it is sent, and as it is shown.
        self._kept: tuple[bytes, bytes | None] | None = None

    def resume(self) -> None:
        """Go on with responses that had to wait."""
        if self._pace is not None:
            self._send_slowly(self._pace)
            if self.is_waiting:
                return
        self.is_waiting = False
        self._release()
        if self._is_due and self.is_between_frames:
            self._passed()
        if not self.is_waiting:
            super().resume()

    def answer(self) -> None:
        """Send a response that the proxy has made, if it is the next one."""
        in_flight = self._state.in_flight
        self._is_due = self._is_due or (bool(in_flight) and in_flight[0].answer is not None)
        if self._is_due and self.is_between_frames and not self.is_dead:
            self._passed()

    def _begin(self, data: bytes, at: int, end: int, size: int) -> int:
        exchange = self._exchange(data, at, end, size)
        if exchange is None:
            is_cut = size >= _CORRELATION_ID_SIZE and end - at < _HEAD.size
            return NOT_YET if is_cut and self._state.in_flight else LENGTH_SIZE + size
        decision, reads = exchange.decision, exchange.reads_response
        is_long = size > HELD_BYTES_MAX
        if decision.changes_response or (reads and exchange.api_key not in STREAMED):
            return held(size)
        if not is_long and (reads or decision.rule is not None):
            return held(size)
        if not self._may_pass(exchange):
            return NOT_YET
        if reads:
            self._is_apart = True
            self._changes = HintsFilter(
                exchange.api_key, exchange.api_version, LENGTH_SIZE + size
            )
        self._pop()
        return self._cut(exchange, LENGTH_SIZE + size)

    def _exchange(self, data: bytes, at: int, end: int, size: int) -> Exchange | None:
        """Return the request that a response answers; None if it is not known."""
        in_flight = self._state.in_flight
        if not in_flight:
            return None
        first = in_flight[0]
        if first.api_key == NO_API:
            return first
        if size < _CORRELATION_ID_SIZE or end - at < _HEAD.size:
            return None
        correlation_id = _HEAD.unpack_from(data, at)[1]
        if first.correlation_id == correlation_id and first.answer is None:
            return first
        for number, other in enumerate(in_flight):
            if other.correlation_id == correlation_id and other.answer is None:
                # Nodes answer in order: those before it are not answered any more.
                for _ in range(number):
                    in_flight.popleft()
                return other
        return None

    def _may_pass(self, exchange: Exchange) -> bool:
        """Return whether the rule of a request lets its response pass now."""
        decision, state = exchange.decision, self._state
        rule, fault = decision.rule, decision.fault
        if rule is None:
            return True
        if fault.holds_response and rule in state.shared.rules:
            self.is_waiting = True
            return False
        if exchange.due is None:
            exchange.due = state.now + decision.delay_s
        if state.now < exchange.due:
            self.is_waiting = True
            state.commands.append(WakeAt(exchange.due))
            return False
        if decision.drop is not None or fault.hang_up_at == 0:
            state.is_closed = True
            self.die()
            return False
        if fault.bytes_per_s is not None:
            self._is_apart, self._pace = True, Pace(fault.bytes_per_s, state.now)
        return True

    def _cut(self, exchange: Exchange, size: int) -> int:
        """Return how many bytes of a response are passed on."""
        cut = exchange.decision.fault.hang_up_at
        if cut is None:
            return size
        self._is_last = self._is_due = True
        return min(cut, size)

    def _pop(self) -> Exchange:
        in_flight = self._state.in_flight
        exchange = in_flight.popleft()
        self._is_due = bool(in_flight) and in_flight[0].answer is not None
        return exchange

    def _passed(self) -> None:
        """Send the responses that the proxy has made and that are next; or end the connection."""
        in_flight = self._state.in_flight
        while self._is_due and not self._is_last and not self.is_waiting:
            exchange = in_flight[0]
            if not self._may_pass(exchange):
                return
            self._pop()
            assert exchange.answer is not None
            data = frame(exchange.answer)
            self._emit(data[: self._cut(exchange, len(data))])
            self._is_apart = False
        if self._is_last and not self.is_waiting:
            self._state.is_closed = True
            self.die()

    def _whole(self, payload: bytes) -> None:
        exchange = self._state.in_flight[0]
        is_token = exchange.api_key == NO_API
        kept = (payload, bytes(len(payload))) if is_token else self._read(exchange, payload)
        shown = kept[1]
        self._record(frame(payload if shown is None else shown))
        self._kept = kept
        self._release()

    def _release(self) -> None:
        """Send the response that is held, if it may pass."""
        if self._kept is None or not self._may_pass(self._state.in_flight[0]):
            return
        sent, shown = self._kept
        self._kept, self._is_apart = None, False
        self._put(sent, shown, self._cut(self._pop(), LENGTH_SIZE + len(sent)))

    def _read(self, exchange: Exchange, payload: bytes) -> tuple[bytes, bytes | None]:
        """Return what is passed on in place of a response, and what a capture gets."""
        key, version = exchange.api_key, exchange.api_version
        try:
            header, body, end = decode_response(payload, key, version)
        except WireError:
            # The client judges it.
            return payload, None
        position = decode_response_header(payload, key, version)[1]
        version = answered_version(payload, position, key, version)
        is_changed = self._change(exchange, body)
        if exchange.decision.changes_response:
            body, is_changed = exchange.decision.changed_response(body), True
        sent = payload
        if is_changed:
            sent = encode_response(header, body, version) + payload[end:]
        if isinstance(body, SaslAuthenticateResponse) and self._records:
            body.auth_bytes = bytes(len(body.auth_bytes))
            return sent, encode_response(header, body, version) + payload[end:]
        return sent, None

    def _change(self, exchange: Exchange, body: Message) -> bool:
        """Change what a response tells of nodes; returns whether anything was."""
        if isinstance(body, ApiVersionsResponse):
            return _limit_versions(body)
        if isinstance(body, SaslHandshakeResponse):
            return self._change_mechanisms(exchange, body)
        if isinstance(body, MetadataResponse):
            self._state.shared.topics.learn(body, exchange.api_version)
        if isinstance(body, EnvelopeResponse):
            return self._change_carried(exchange, body)
        return rewrite_response(body, self._state.role, self._state.shared.find_here)

    def _change_carried(self, exchange: Exchange, envelope: EnvelopeResponse) -> bool:
        """Change the response that a broker gets for a client, which sees its addresses too."""
        data = envelope.response_data or b""
        try:
            header, body, end = decode_response(data, *exchange.carried)
        except WireError:
            return False
        if not rewrite_response(body, self._state.role, self._state.shared.find_here):
            return False
        envelope.response_data = encode_response(header, body, exchange.carried[1]) + data[end:]
        return True

    def _change_mechanisms(self, exchange: Exchange, body: SaslHandshakeResponse) -> bool:
        if exchange.mechanism == GSSAPI and not body.error_code:
            self._state.commands.append(Say(_NO_KERBEROS))
            body.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            body.mechanisms = [one for one in body.mechanisms if one != GSSAPI]
            return True
        if not exchange.api_version and not body.error_code:
            self._state.tokens = _TOKENS.get(exchange.mechanism, 0)
        return False

    def _emit(self, data: Data, recorded: bytes | None = None) -> None:
        if self._pace is None or recorded is not None or self.is_mute:
            super()._emit(data, recorded)
        else:
            self._pace.add(data)
            self._send_slowly(self._pace)

    def _send_slowly(self, pace: Pace) -> None:
        """Send what may be sent now, and wait for the rest."""
        if piece := pace.take(self._state.now):
            self._state.commands.append(Send(self.target, piece))
        self.is_waiting = pace.is_waiting
        if self.is_waiting:
            self._state.commands.append(WakeAt(pace.next_at))
        elif not self._left:
            self._pace = None


def _limit_versions(body: ApiVersionsResponse) -> bool:
    """Offer no version of an API with addresses that no schema knows: they could not be found."""
    is_changed = False
    for each in body.api_keys:
        if each.api_key in LOOKED_THROUGH:
            high = messages.API_VERSIONS[each.api_key][1]
            if each.max_version > high >= each.min_version:
                each.max_version, is_changed = high, True
    return is_changed
