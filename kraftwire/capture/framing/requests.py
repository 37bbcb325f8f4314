"""The client's direction: requests, and the bare SASL tokens of old clients.

Owns the hot loop over request headers. A request is registered as soon as its header is there, so
that a response finds it whatever happens to its body.
"""

from __future__ import annotations

from kraftwire.capture.framing.frames import Pairing, Request
from kraftwire.capture.framing.headers import (
    HEADER,
    HEADER_SIZE,
    PRODUCE,
    Before,
    api_table,
    client_id,
    is_controlled_shutdown_v0,
    is_gssapi_token,
    parse_header,
    produce_acks,
)
from kraftwire.capture.framing.reader import FrameReader
from kraftwire.capture.framing.search import RequestSearch
from kraftwire.capture.packets.packet import Stamp
from kraftwire.capture.tcp import Flow
from kraftwire.limits import FRAME_SIZE_MAX

_NO_API = -1
_STOP_MAX = 4 + FRAME_SIZE_MAX


class RequestReader(FrameReader):
    """Cuts a client's bytes into requests."""

    __slots__ = (
        "_client", "_client_size", "_has_tokens", "_last_id", "_raw_client", "_table",
        "_tokens_after",
    )  # fmt: skip

    DIRECTION = "request"

    def __init__(self, pairing: Pairing, flow: Flow) -> None:
        self._table = api_table()
        # The bytes of the client id in the last request, none for null; None before the first.
        self._raw_client: bytes | None = None
        # The length of the client id as written: -1 for null, which has no bytes either.
        self._client_size = -1
        self._client: str | None = None
        self._last_id: int | None = None
        # Bare tokens come until the next real request.
        self._has_tokens = False
        self._tokens_after: int | None = None
        super().__init__(pairing, flow)

    def expect(self, before: Before | None) -> None:
        """Believe a first request of an unknown API after one `before`. Order: before any bytes."""
        if before is not None:
            self._raw_client, self._last_id = before

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of the searched bytes, and of the client id that is compared."""
        return super().held_bytes + len(self._raw_client or b"")

    @property
    def client(self) -> str | None:
        """The client id in the last request, as text."""
        return self._client

    def _cut(self, data: bytes, start: int, end: int, first: Stamp, stamp: Stamp) -> None:
        table = self._table
        unpack = HEADER.unpack_from
        while end - start >= HEADER_SIZE:
            size, kind, correlation_id, id_size = unpack(data, start)
            stop = start + 4 + size
            api = table.get(kind)
            body = start + HEADER_SIZE + (id_size if id_size > 0 else 0)
            raw = data[start + HEADER_SIZE : body]
            is_usual = raw == self._raw_client and id_size == self._client_size and body <= end
            if api is not None and is_usual and body <= stop <= start + _STOP_MAX:
                request = Request(api[0], api[1], correlation_id, self._client)
                self._last_id = correlation_id
                if api[2]:
                    self._apply_rules(request, api[2], data, body, min(stop, end))
            else:
                unusual = self._unusual(data, start, end)
                if unusual is None:
                    self._lose()
                    self.flow.feed(data, start, end, first)
                    return
                request = unusual
            if request.has_response:
                self.pairing.register(request)
            if stop > end:
                self._begin(size, data[start + 4 : end], request, first)
                return
            self._emit(request, data[start + 4 : stop], size, first, ())
            first = stamp
            start = stop
        if start < end:
            self._keep_short(data, start, end, first, stamp)

    def _keep_short(
        self, data: bytes, start: int, end: int, first: Stamp, stamp: Stamp
    ) -> None:
        """Deal with bytes that are too few for a header: the start of one, or a short token."""
        size = int.from_bytes(data[start : start + 4], "big", signed=True)
        stop = start + 4 + size
        if end - start < 4 or stop > end:
            self._keep(data[start:end], first)
        elif size >= 0 and (request := self._token(data, start, end)) is not None:
            self.pairing.register(request)
            self._emit(request, data[start + 4 : stop], size, first, ())
            self._cut(data, stop, end, stamp, stamp)
        else:
            self._lose()
            self.flow.feed(data, start, end, first)

    def _unusual(self, data: bytes, start: int, end: int) -> Request | None:
        """A request from another client than the last, of an unknown API or version, or cut in
        its header; a token; None if it is none of them.
        """
        before = None
        if self._raw_client is not None and self._last_id is not None:
            before = self._raw_client, self._last_id
        header = parse_header(data[start:end], 0, strict=False, before=before)
        if header is None:
            if is_controlled_shutdown_v0(data, start):
                return Request(7, 0, int.from_bytes(data[start + 8 : start + 12], "big"), None)
            return self._token(data, start, end)
        _, _, api_key, api_version, correlation_id, raw = header
        request = Request(api_key, api_version, correlation_id, None)
        self._last_id = correlation_id
        id_size = int.from_bytes(data[start + 12 : start + 14], "big", signed=True)
        body = start + HEADER_SIZE + max(id_size, 0)
        if raw is None or len(raw) == id_size:
            request.client_id = None if raw is None else client_id(raw)
            self._raw_client, self._client_size = raw or b"", id_size
            self._client = request.client_id
        api = self._table.get(api_key << 16 | api_version)
        if api is not None and api[2]:
            self._apply_rules(request, api[2], data, body, min(end, start + 4 + header[1]))
        return request

    def _token(self, data: bytes, start: int, end: int) -> Request | None:
        """Return a bare SASL token, if one may come now."""
        size = int.from_bytes(data[start : start + 4], "big", signed=True)
        if not 0 <= size <= FRAME_SIZE_MAX:
            return None
        if self._last_id is None and is_gssapi_token(data[start + 4 : end]):
            self._has_tokens = True
        if not self._has_tokens or self._last_id != self._tokens_after:
            return None
        return Request(_NO_API, _NO_API, _NO_API, None)

    def _apply_rules(self, request: Request, kind: int, data: bytes, body: int, end: int) -> None:
        """Apply what a request changes for the frames that follow it.

        Bytes from `end` on are not the request's, or have not been captured.
        """
        if kind == PRODUCE:
            request.has_response = produce_acks(data, body, end, request.api_version) != 0
        else:
            self._has_tokens = True
            self._tokens_after = request.correlation_id

    def _emit(
        self,
        request: Request,
        data: bytes,
        size: int,
        stamp: Stamp,
        missing: tuple[tuple[int, int], ...],
    ) -> None:
        frame = self.new_frame(request, data, size, stamp, missing)
        request.time_ns = frame.time_ns
        request.position = frame.position
        pairing = self.pairing
        pairing.frame_queue.frames.append(frame)
        if pairing.parked:
            pairing.match_parked()

    def _hand_out(self, data: bytes, stamp: Stamp, missing: tuple[tuple[int, int], ...]) -> None:
        request = self._request
        self._request = None
        if request is not None:
            if request.api_key >= 0:
                self._complete(request, data, missing[0][0] if missing else len(data))
            self._emit(request, data, self._size, stamp, missing)

    def _complete(self, request: Request, data: bytes, end: int) -> None:
        """Read what the first packet did not show: the client id, or that there is no response."""
        id_size = int.from_bytes(data[8:10], "big", signed=True)
        body = 10 + max(id_size, 0)
        if request.client_id is None and 10 < body <= end:
            request.client_id = client_id(data[10:body])
        api = self._table.get(request.api_key << 16 | request.api_version)
        if api is None or api[2] != PRODUCE or not request.has_response:
            return
        self._apply_rules(request, PRODUCE, data, body, end)
        pending = self.pairing.pending
        if not request.has_response and pending and pending[-1] is request:
            pending.pop()

    def _new_search(self) -> RequestSearch:
        return RequestSearch(self._raw_client, self._last_id)

    def _find(self, _fresh: int | None, /) -> int:
        search = self._search
        if not isinstance(search, RequestSearch):
            return -1
        return search.find(self.pairing.is_parked)

    def _find_last(self) -> int:
        search = self._search
        return search.find_last() if isinstance(search, RequestSearch) else -1
