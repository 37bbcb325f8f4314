"""Blocking calls: each runs its own trio event loop.

Every call of `Admin` discovers the cluster again, so there is nothing to close, and a `fork`, a
thread or an idle hour between two calls does no harm.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import trio

from kraftwire.client.admin import AsyncAdmin
from kraftwire.client.security import Given, client_security
from kraftwire.protocol.endpoint import Address
from kraftwire.transport.client_connection import ClientConnection
from kraftwire.wire.message import Message

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def _with_parameters(
    of: Callable[_Parameters, AsyncAdmin],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Admin, _Parameters], None]]:
    """Return a decorator that gives a constructor the parameters of another class."""

    def decorate(init: Callable[..., None]) -> Callable[Concatenate[Admin, _Parameters], None]:
        init.__signature__ = inspect.signature(of.__init__)  # type: ignore[attr-defined]
        return init

    return decorate


def _blocking(
    call: Callable[Concatenate[AsyncAdmin, _Parameters], Awaitable[_Result]],
) -> Callable[Concatenate[Admin, _Parameters], _Result]:
    """Return the method of `Admin` that runs a call of `AsyncAdmin` to its end."""

    @wraps(call)
    def method(self: Admin, /, *args: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        async def run() -> _Result:
            async with self._template.unconnected() as admin:
                return await call(admin, *args, **named)

        return _finish(run)

    return method


class Admin:
    """A client of one cluster for programs without an event loop.

    Parameters, calls, results and errors are those of `AsyncAdmin`. Not for use inside trio.
    """

    @_with_parameters(AsyncAdmin)
    def __init__(self, **options: Any) -> None:
        # Read here, so that warnings name the line of the caller.
        to_controllers = options.get("bootstrap_servers") is None
        options["security"] = client_security(
            options.get("security"), to_controllers=to_controllers
        )
        self._template = AsyncAdmin(**options)

    describe_quorum = _blocking(AsyncAdmin.describe_quorum)
    describe_log = _blocking(AsyncAdmin.describe_log)
    describe_cluster = _blocking(AsyncAdmin.describe_cluster)
    describe_features = _blocking(AsyncAdmin.describe_features)
    list_topics = _blocking(AsyncAdmin.list_topics)
    add_raft_voter = _blocking(AsyncAdmin.add_raft_voter)
    remove_raft_voter = _blocking(AsyncAdmin.remove_raft_voter)
    unregister_controller = _blocking(AsyncAdmin.unregister_controller)
    update_raft_voter = _blocking(AsyncAdmin.update_raft_voter)
    update_features = _blocking(AsyncAdmin.update_features)
    request = _blocking(AsyncAdmin.request)


class BlockingConnection:
    """A connection to one node for programs without an event loop.

    Each call runs an event loop of its own; the socket stays open between them. Parameters, order
    and errors are those of `ClientConnection`.
    """

    def __init__(
        self, address: Address, *, client_id: str, timeout_s: float, security: Given = None
    ) -> None:
        secured = client_security(security)
        self._timeout_s = timeout_s
        self._connection = _finish(
            lambda: ClientConnection.connect(
                address,
                client_id=client_id,
                timeout_s=timeout_s,
                security=secured,
                explains=True,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, message: Message) -> Message:
        """Send a request and wait for its answer; error codes in it are left to the caller."""
        return _finish(lambda: self._connection.request(message, timeout_s=self._timeout_s))

    def close(self) -> None:
        """Close the connection."""

        async def close() -> None:
            self._connection.close()

        _finish(close)


def _finish(call: Callable[[], Awaitable[_Result]]) -> _Result:
    """Run a call to its end in an event loop of its own."""
    try:
        return trio.run(call)
    except BaseExceptionGroup as group:
        # trio wraps Ctrl-C during a connection attempt in an exception group.
        if group.subgroup(KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
