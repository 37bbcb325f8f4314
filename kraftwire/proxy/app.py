"""The proxy in the foreground, until SIGINT or SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable, Iterable

import trio

from kraftwire.faults.rules import FaultRule
from kraftwire.node.app import first_error
from kraftwire.proxy.server import Proxy
from kraftwire.proxy.settings import ProxySettings


def run(
    settings: ProxySettings,
    rules: Iterable[FaultRule],
    *,
    announce: Callable[[str], object],
    say: Callable[[str], object],
) -> int:
    """Run a proxy until a signal, and print what it has done; returns the exit code.

    Raises: as `Proxy.run`.
    """
    proxy = Proxy(settings, announce=announce, say=say)
    try:
        trio.run(_run_until_stopped, proxy, rules)
    except BaseExceptionGroup as group:
        raise first_error(group) from group
    for line in proxy.summary():
        say(line)
    return 0


async def _run_until_stopped(proxy: Proxy, rules: Iterable[FaultRule]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop, signals, nursery.cancel_scope)
            for rule in rules:
                proxy.add_rule(rule)
            await proxy.run()


async def _stop(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()
        return
