"""What is to be sent to one side: in the order of the commands, and sent by whoever waits first.

Both directions may have something for one side, so neither sends by itself. A task that reads goes
on only when nothing is left, which is what keeps memory bounded.
"""

from __future__ import annotations

import trio

from kraftwire.proxy.events import Data
from kraftwire.transport.streams import Stream

# Smaller pieces are sent together.
_JOINED_BYTES = 64 * 1024


class Outlet:
    """Sends to one stream. Order: `add`, then `flush`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._pending: list[Data] = []
        self._is_sending = False
        self._sent = trio.Event()

    def add(self, data: Data) -> None:
        """Add bytes behind those that wait."""
        self._pending.append(data)

    async def flush(self) -> None:
        """Return when nothing is left. Raises: trio.BrokenResourceError, trio.ClosedResourceError;
        as the stream."""
        if self._is_sending:
            await self._sent.wait()
        if not self._pending or self._is_sending:
            return
        self._is_sending, self._sent = True, trio.Event()
        try:
            while self._pending:
                await self._stream.send_all(self._take())
        finally:
            self._is_sending = False
            self._sent.set()

    def _take(self) -> Data:
        pending = self._pending
        if len(pending) == 1:
            return pending.pop()
        size = count = 0
        while count < len(pending) and (not count or size + len(pending[count]) <= _JOINED_BYTES):
            size += len(pending[count])
            count += 1
        pieces = pending[:count]
        del pending[:count]
        return b"".join(pieces) if count > 1 else pieces[0]
