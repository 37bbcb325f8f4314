"""The login of one accepted connection: its turns among all logins, its deadline, its refusals.

`security.sasl_server` processes its messages.

Source: SEC-S7, SEC-S9, SEC-S12; Kafka's `SaslServerAuthenticator`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import trio

from kraftwire.node.admission import LOGIN_READ_BYTES, ConnectionBudget
from kraftwire.node.config import ConnectionLimits
from kraftwire.node.connection_end import ConnectionEnded
from kraftwire.protocol.payloads import Buffers
from kraftwire.security.principal import ANONYMOUS, Principal
from kraftwire.security.sasl_server import LoginEnd, LoginStep, SaslServer
from kraftwire.transport.streams import Stream
from kraftwire.wire.frame import frame

Write = Callable[[Buffers], Awaitable[None]]


class ConnectionLogin:
    """The login of one connection, and the renewals of its session.

    `deadline` is that of the first login; each renewal has a deadline of its own.
    """

    def __init__(
        self,
        server: SaslServer,
        budget: ConnectionBudget,
        limits: ConnectionLimits,
        *,
        receive_max_bytes: int,
        deadline: float,
    ) -> None:
        self.receive_max_bytes = receive_max_bytes
        self._server = server
        self._budget = budget
        self._limits = limits
        self._deadline = deadline

    @property
    def is_in_progress(self) -> bool:
        """Whether no request is served yet, or not until a renewal is complete."""
        return not self._server.is_ready

    @property
    def principal(self) -> Principal:
        """The principal that has logged in; anonymous before."""
        return self._server.principal or ANONYMOUS

    @property
    def software(self) -> str:
        """The client's software, from ApiVersions before the login."""
        return self._server.software

    @property
    def is_expired(self) -> bool:
        """Whether the session has ended, so that no request is served."""
        return self._server.is_expired(_now_ms())

    def is_of_login(self, payload: bytes) -> bool:
        """Return whether a payload is part of a login, or has to be treated as one."""
        return self._server.is_of_login(payload)

    async def read(self, stream: Stream) -> bytes | bytearray:
        """Read some bytes, in turn with other logins. Raises: ConnectionEnded."""
        with trio.move_on_at(self._deadline):
            await self._budget.admit_login_read()
            data = await stream.receive_some(LOGIN_READ_BYTES)
            self._budget.end_login_read(len(data))
            return data
        raise ConnectionEnded("slow-request")

    async def receive(self, payload: bytes) -> LoginStep:
        """Process a payload in turn, as any request. Raises: ConnectionEnded."""
        if not self.is_in_progress:
            self._budget.begin_login()
            self._deadline = trio.current_time() + self._limits.handshake_ms / 1000
        size = len(payload)
        with trio.move_on_at(self._deadline) as scope:
            await self._budget.admit_token(size)
        if scope.cancelled_caught:
            raise ConnectionEnded("slow-request")
        try:
            epoch_ms = time.time_ns() // 1_000_000
            return self._server.receive(payload, now_ms=_now_ms(), epoch_ms=epoch_ms)
        finally:
            self._budget.end_token(size)

    async def answer(self, step: LoginStep, write: Write) -> None:
        """Write the reply of a step, after a delay if it is a refusal.

        Raises: ConnectionEnded if the connection is to end.
        """
        if step.end is LoginEnd.DELAYED:
            await self.delay_refusal()
        if step.reply is not None:
            await write([frame(step.reply)])
        if step.end is not LoginEnd.OPEN:
            raise ConnectionEnded("login-refused", step.problem)

    async def delay_refusal(self) -> None:
        """Wait before a refusal, which slows down guesses."""
        await trio.sleep(self._limits.failed_login_delay_ms / 1000)


def _now_ms() -> int:
    return int(trio.current_time() * 1000)
