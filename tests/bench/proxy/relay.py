"""Passes bytes on, and nothing else: `python -m tests.bench.proxy.relay PORT`. Prints its port."""

from __future__ import annotations

import sys
from contextlib import suppress

import trio

from kraftwire.node.listener import raise_descriptor_limit

# As much as a proxy reads at once.
_READ_BYTES = 256 * 1024


async def _copy(source: trio.SocketStream, target: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError):
        while data := await source.receive_some(_READ_BYTES):
            await target.send_all(data)
        await target.send_eof()


async def _relay(port: int) -> None:
    async def serve(client: trio.SocketStream) -> None:
        upstream = await trio.open_tcp_stream("127.0.0.1", port)
        async with upstream, trio.open_nursery() as nursery:
            nursery.start_soon(_copy, client, upstream)
            nursery.start_soon(_copy, upstream, client)

    raise_descriptor_limit()
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(listener.socket.getsockname()[1], flush=True)
    await trio.serve_listeners(serve, [listener])


if __name__ == "__main__":
    trio.run(_relay, int(sys.argv[1]))
