"""Tasks of trio in a thread of their own, for a test that runs in another one."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import trio

from kraftwire.node.app import first_error

_Result = TypeVar("_Result")


class TrioThread:
    """A thread with trio's loop, and a nursery for tasks in it.

    Order: `open`, then everything else, `close` at the end; `call` in any thread, all others in
    another one. Before the start and after the end `call` and `start` raise trio.RunFinishedError,
    and so does `call` in a process that was forked, which has no such thread.
    """

    nursery: trio.Nursery

    def __init__(self, name: str, clock: trio.abc.Clock | None = None) -> None:
        self._clock = clock
        self._is_up = threading.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def open(self) -> None:
        """Start the thread, and return once it takes calls."""
        self._thread.start()
        self._is_up.wait()

    def close(self) -> None:
        """Cancel all tasks, and return once the thread has ended."""
        self.run_soon(lambda: self.nursery.cancel_scope.cancel())
        if self._thread.ident is not None:
            self._thread.join()

    def call(self, function: Callable[[], _Result]) -> _Result:
        """Call a function in the thread, and return its result."""
        if threading.current_thread() is self._thread:
            return function()
        if not self._thread.is_alive():
            raise trio.RunFinishedError
        return trio.from_thread.run_sync(function, trio_token=self._token)

    def run_soon(self, function: Callable[[], object]) -> None:
        """Call a function in the thread without waiting for it; not if the thread has ended."""
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(function)

    def start(self, task: Callable[..., Awaitable[object]]) -> Any:
        """Start a task, and return the value with which it says that it has started.

        Raises: what ends the task before that.
        """
        started = partial(self.nursery.start, task)
        try:
            return trio.from_thread.run(started, trio_token=self._token)
        except BaseExceptionGroup as group:
            raise first_error(group) from group

    def _run(self) -> None:
        trio.run(self._main, clock=self._clock)

    async def _main(self) -> None:
        async with trio.open_nursery() as self.nursery:
            self._token = trio.lowlevel.current_trio_token()
            self._is_up.set()
            await trio.sleep_forever()
