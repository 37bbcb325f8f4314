"""Retries: after a failed connection, a change of leader, a node that does not know the leader.

If a node is not the leader but names it, the request goes to the leader next; if it does not know
the leader, or the named one fails, the nodes are discovered again after a pause.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import trio

from kraftwire.client.cluster import (
    ClusterConnections,
    ClusterSettings,
    error_detail,
    is_temporary,
)
from kraftwire.client.requests import NotLeaderError, describe_request
from kraftwire.client.results import ClusterInfo, NodeInfo
from kraftwire.client.survey import brokers_text, problems_text, survey, survey_text
from kraftwire.errors import ApiError, SecurityError, UsageError, WireError
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message

_Result = TypeVar("_Result")


class _RetryError(Exception):
    """This attempt failed with a temporary error."""

    def __init__(self, error: ApiError) -> None:
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """The time of a call with all its attempts, and the pauses between them, in seconds.

    `on_retry` is called with the error before each retry.
    """

    timeout_s: float
    backoff_s: float
    backoff_max_s: float
    on_retry: Callable[[str], None] | None = None


class Attempts:
    """Sends requests until a node gives a final response. Order: close it with `close`."""

    def __init__(self, cluster: ClusterSettings, retry: RetrySettings) -> None:
        self._cluster = ClusterConnections(cluster)
        self._retry = retry
        self._count = 0
        # The node that failed last: others are tried before it.
        self._suspect_id: int | None = None

    @property
    def timeout_s(self) -> float:
        """How long a call may take."""
        return self._retry.timeout_s

    @property
    def is_controllers(self) -> bool:
        """Whether the cluster is reached through its controllers."""
        return self._cluster.settings.is_controllers

    def unconnected(self) -> Attempts:
        """Return attempts with the same settings and without connections."""
        return Attempts(self._cluster.settings, self._retry)

    def close(self) -> None:
        """Close all connections."""
        self._cluster.close()

    async def until_done(
        self, what: str, attempt: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        """Repeat an attempt, with growing pauses, until it succeeds, fails finally, or times
        out."""
        last: ApiError | None = None
        pause_s, pause_max_s = self._retry.backoff_s, self._retry.backoff_max_s
        with trio.move_on_after(self._retry.timeout_s):
            while True:
                try:
                    return await attempt()
                except _RetryError as failed:
                    last = failed.error
                self._count += 1
                self._cluster.forget()
                if self._retry.on_retry is not None:
                    self._retry.on_retry(error_detail(last))
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, pause_max_s)
        detail = f"{what} took more than {self._retry.timeout_s:.3g} s"
        states = await survey(self._cluster)
        found = survey_text(states) if self.is_controllers else brokers_text(states)
        if found is not None:
            detail += f"; {found}"
        elif last is not None:
            detail += f"; the last problem: {error_detail(last)}"
        elif problems := problems_text(states):
            detail += f"; {problems}"
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, detail)

    async def discovered(self, *, fresh: bool = False) -> ClusterInfo:
        """Return the cluster's nodes, discovering them if necessary. Raises: _RetryError, ApiError,
        WireError."""
        try:
            return await (self._cluster.refresh() if fresh else self._cluster.info())
        except ApiError as error:
            raise _retry_or_final(error) from None

    async def request_once(self, message: Message, node_id: int | None) -> Message:
        """Send a request once to a node, or to any node that answers.

        Raises: UsageError for a node id that the cluster does not have.
        """
        if node_id is None:
            try:
                return await self.request_any(message, lambda response: response)
            except _RetryError as failed:
                raise failed.error from None
        node = (await self._cluster.info()).node(node_id)
        if node is None:
            raise UsageError(f"the cluster has no node {node_id}")
        return await self._cluster.request(node, message)

    async def request_any(
        self, message: Message, read: Callable[[Message], _Result]
    ) -> _Result:
        """Send a request to the nodes in turn until one responds. Raises: _RetryError."""
        failure: ApiError | None = None
        refused: SecurityError | None = None
        for node in (await self.discovered()).nodes:
            try:
                return read(await self._cluster.request(node, message))
            except SecurityError as error:
                refused = refused or error
            except ApiError as error:
                if not is_temporary(error):
                    raise
                failure = error
        if refused is not None:
            raise refused
        assert failure is not None
        raise _RetryError(failure)

    async def request_leader(
        self,
        message: Message,
        read: Callable[[Message], _Result],
        *,
        is_repeatable: bool = True,
    ) -> _Result:
        """Send a request to the leader: the active controller, or any broker, which forwards it.

        Raises: _RetryError if the leader is not found or not reachable; once a request that must
        not be repeated has been sent, its errors are final.
        """
        info = await self.discovered()
        node = self._first_choice(info)
        tried: set[int] = set()
        refused: SecurityError | None = None
        while True:
            tried.add(node.id)
            try:
                return await self._attempt(node, message, read, is_repeatable)
            except SecurityError as error:
                # Any broker passes the request on; of the controllers only the leader serves it.
                refused = refused or error
                others = [other for other in info.nodes if other.id not in tried]
                if self.is_controllers or not others:
                    raise refused from None
                node = others[0]
            except NotLeaderError as error:
                hint = None if error.leader_id is None else info.node(error.leader_id)
                if hint is None or hint.id in tried:
                    if not self.is_controllers:
                        await self._refresh_controller(node)
                    raise _RetryError(error) from None
                node = hint

    def _first_choice(self, info: ClusterInfo) -> NodeInfo:
        """Return the active controller, if known and not failed last; else each node in turn."""
        if self.is_controllers and info.controller_id is not None:
            active = info.node(info.controller_id)
            if active is not None and active.id != self._suspect_id:
                return active
        others = [node for node in info.nodes if node.id != self._suspect_id] or info.nodes
        return others[self._count % len(others)]

    async def _attempt(
        self,
        node: NodeInfo,
        message: Message,
        read: Callable[[Message], _Result],
        is_repeatable: bool,
    ) -> _Result:
        try:
            await self._cluster.connect(node)
        except ApiError as error:
            self._suspect_id = node.id
            raise _retry_or_final(error) from None
        try:
            timeout_s = None if is_repeatable else self._retry.timeout_s
            response = await self._cluster.request(node, message, timeout_s)
        except ApiError as error:
            self._suspect_id = node.id
            raise _retry_or_final(error) if is_repeatable else _outcome_unknown(error) from None
        try:
            answer = read(response)
        except NotLeaderError:
            raise
        except ApiError as error:
            self._suspect_id = node.id
            raise _retry_or_final(error) if is_repeatable else error from None
        self._suspect_id = None
        return answer

    async def _refresh_controller(self, broker: NodeInfo) -> None:
        """Make a broker find the active controller again.

        A broker keeps forwarding voter changes to the controller that led when it last checked.
        Only for DescribeQuorum does an answer from a former leader make it check again.
        """
        with contextlib.suppress(ApiError, WireError):
            await self._cluster.request(broker, describe_request())


def _retry_or_final(error: ApiError) -> _RetryError | ApiError:
    return _RetryError(error) if is_temporary(error) else error


def _outcome_unknown(error: ApiError) -> ApiError:
    """Return the error of a request that must not be repeated and may have been carried out."""
    if error.code == ErrorCode.UNSUPPORTED_VERSION:
        return error
    detail = f"{error_detail(error)}; whether the change was made is not known"
    return ApiError(error.code, detail)
