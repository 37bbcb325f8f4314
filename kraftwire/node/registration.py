"""Registration of a node: its controller, its broker, and the broker's heartbeats.

The active controller's side is in `controller`. A controller registers again whenever its
registration in the log is outdated; a broker registers once per start, then sends heartbeats. If
the quorum has voters of another implementation, this broker does not register, and asks to be
fenced if it has: otherwise it would be assigned partitions.

Source: Kafka's `ControllerRegistrationManager` and `BrokerLifecycleManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import trio

from kraftwire.controller.image import ControllerImage
from kraftwire.controller.versions import SUPPORTED_FEATURES, WITH_CONTROLLERS
from kraftwire.errors import ApiError
from kraftwire.messages import broker_registration_request as broker_schema
from kraftwire.messages import controller_registration_request as controller_schema
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.controller_registration_response import ControllerRegistrationResponse
from kraftwire.node.context import Context
from kraftwire.node.logs import log
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.wire.message import Message

_PLAINTEXT = 0

T = TypeVar("T")

# Units: seconds. A fenced broker sends heartbeats often, so that it is unfenced soon after its
# start.
_BACKOFF_MIN = 0.05
_BACKOFF_MAX = 2.0
_FENCED_INTERVAL = 0.1
_LEAVE_TIMEOUT = 2.0


class Registration:
    """Keeps a node registered.

    Order: `app` runs `await Registration(context, incarnation_id).run()` as a separate task once
    the listeners are bound, and calls `leave` before the core is asked to shut down.
    """

    def __init__(self, context: Context, incarnation_id: bytes) -> None:
        """`incarnation_id` is new for every start."""
        self._context = context
        self._incarnation_id = incarnation_id
        self._broker_epoch: int | None = None
        self._is_leaving = False
        self._backoff = _BACKOFF_MIN
        self._refusals: dict[str, int] = {}

    async def run(self) -> None:
        """Keep controller and broker registered for as long as the node runs."""
        config = self._context.config
        async with trio.open_nursery() as nursery:
            if config.is_controller:
                nursery.start_soon(self._register_controller)
            if config.is_broker:
                nursery.start_soon(self._run_broker)

    async def leave(self) -> None:
        """Announce to the active controller that this broker stops: it is fenced at once."""
        self._is_leaving = True
        if self._broker_epoch is None:
            return
        with trio.move_on_after(_LEAVE_TIMEOUT):
            try:
                await self._heartbeat(self._broker_epoch)
            except ApiError as error:
                log("debug", "broker-leave-failed", reason=error)

    async def _register_controller(self) -> None:
        backoff = _BACKOFF_MIN
        while True:
            if not self._is_controller_due():
                await self._wait_for_commit()
                continue
            answer = await self._send(self._controller_request())
            if isinstance(answer, ControllerRegistrationResponse) and not answer.error_code:
                log("info", "controller-registered")
                backoff = _BACKOFF_MIN
                await self._wait_for_commit()
                continue
            await trio.sleep(backoff)
            backoff = min(backoff * 2, _BACKOFF_MAX)

    def _is_controller_due(self) -> bool:
        """Return whether this controller's registration in the log is missing or outdated."""
        image = self._context.image
        if (image.metadata_version or 0) < WITH_CONTROLLERS or self._context.raft.leader_id < 0:
            return False
        own = ControllerImage(
            self._context.key.id,
            self._incarnation_id,
            self._endpoints(is_controller=True),
            dict(SUPPORTED_FEATURES),
        )
        return image.controllers.get(own.id) != own

    def _controller_request(self) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=self._context.key.id,
            incarnation_id=self._incarnation_id,
            listeners=_listeners(self._endpoints(is_controller=True), controller_schema.Listener),
            features=_features(controller_schema.Feature),
        )

    async def _run_broker(self) -> None:
        """Register, send heartbeats, and start over if the controller has forgotten this broker."""
        while not self._is_leaving:
            if not self._is_broker_due():
                await self._wait_for_commit()
                continue
            answer = await self._send(self._broker_request())
            if isinstance(answer, BrokerRegistrationResponse) and not answer.error_code:
                self._broker_epoch = answer.broker_epoch
                self._backoff = _BACKOFF_MIN
                log("info", "broker-registered", broker_epoch=answer.broker_epoch)
                await self._send_heartbeats(answer.broker_epoch)
            else:
                await self._back_off()

    def _is_broker_due(self) -> bool:
        raft = self._context.raft
        is_known = self._context.image.metadata_version is not None and raft.cluster_id is not None
        return is_known and raft.leader_id >= 0 and not raft.foreign_voters

    def _broker_request(self) -> BrokerRegistrationRequest:
        context = self._context
        return BrokerRegistrationRequest(
            broker_id=context.key.id,
            cluster_id=context.raft.cluster_id or "",
            incarnation_id=self._incarnation_id,
            listeners=_listeners(self._endpoints(is_controller=False), broker_schema.Listener),
            features=_features(broker_schema.Feature),
            rack=context.config.rack,
            log_dirs=[context.key.directory_id],
        )

    async def _send_heartbeats(self, broker_epoch: int) -> None:
        """Send heartbeats until the broker epoch is stale."""
        was_fenced = True
        while not self._is_leaving:
            try:
                answer = await self._heartbeat(broker_epoch)
            except ApiError:
                await self._back_off()
                continue
            if answer.error_code == ErrorCode.STALE_BROKER_EPOCH:
                log("info", "broker-epoch-stale", broker_epoch=broker_epoch)
                self._broker_epoch = None
                await self._back_off()
                return
            if answer.error_code:
                await self._back_off()
                continue
            self._backoff = _BACKOFF_MIN
            if answer.is_fenced != was_fenced:
                was_fenced = answer.is_fenced
                log("info", "broker-fenced" if was_fenced else "broker-unfenced")
            interval = self._context.config.heartbeat_interval_ms / 1000
            is_hurried = was_fenced and not self._context.raft.foreign_voters
            await trio.sleep(min(interval, _FENCED_INTERVAL) if is_hurried else interval)

    async def _heartbeat(self, broker_epoch: int) -> BrokerHeartbeatResponse:
        """Send one heartbeat. Raises: ApiError if no controller can be reached."""
        context = self._context
        request = BrokerHeartbeatRequest(
            broker_id=context.key.id,
            broker_epoch=broker_epoch,
            current_metadata_offset=context.image.highest_offset,
            want_fence=bool(context.raft.foreign_voters),
            want_shut_down=self._is_leaving,
            # This broker serves the quorum's log alone: it takes no replicas of other topics.
            cordoned_log_dirs=[context.key.directory_id],
        )
        if context.controller.is_active:
            answer = await context.controller.heartbeat(request)
        else:
            answer = await context.forward(request)
        if not isinstance(answer, BrokerHeartbeatResponse):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{answer.NAME} for a heartbeat")
        return answer

    async def _send(
        self, request: ControllerRegistrationRequest | BrokerRegistrationRequest
    ) -> Message | None:
        """Return the active controller's answer, None without one; failures are logged."""
        context = self._context
        try:
            if not context.controller.is_active:
                answer: Message = await context.forward(request)
            elif isinstance(request, BrokerRegistrationRequest):
                answer = await context.controller.register_broker(request, request.VERSIONS.high)
            else:
                answer = await context.controller.register_controller(request)
        except ApiError as error:
            log("debug", "registration-failed", request=request.NAME, reason=error)
            return None
        code = getattr(answer, "error_code", ErrorCode.UNKNOWN_SERVER_ERROR)
        # A broker that was killed is refused until its old session expires: one line is enough.
        is_new = self._refusals.get(request.NAME) != code
        self._refusals[request.NAME] = code
        if is_new and code not in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER):
            log("warning", "registration-refused", request=request.NAME, error=error_name(code))
        return answer

    def _endpoints(self, *, is_controller: bool) -> tuple[Endpoint, ...]:
        """The advertised endpoints of the listeners for peers, or of those for clients."""
        names = {
            listener.name
            for listener in self._context.config.listeners
            if (listener.is_controller if is_controller else listener.is_client)
        }
        return tuple(e for e in self._context.endpoints if e.listener in names)

    async def _wait_for_commit(self) -> None:
        """Wait until more is committed, with a time-out."""
        high_watermark = self._context.raft.high_watermark
        await self._context.wait_high_watermark(high_watermark, 1000)
        await trio.sleep(_BACKOFF_MIN)

    async def _back_off(self) -> None:
        await trio.sleep(self._backoff)
        self._backoff = min(self._backoff * 2, _BACKOFF_MAX)


def _listeners(endpoints: Iterable[Endpoint], listener: Callable[..., T]) -> list[T]:
    return [
        listener(name=e.listener, host=e.host, port=e.port, security_protocol=_PLAINTEXT)
        for e in endpoints
    ]


def _features(feature: Callable[..., T]) -> list[T]:
    return [
        feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
    ]
