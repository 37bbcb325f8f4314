"""A proxy in a thread of this process: a test adds rules while its clients are at work."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import trio

from kraftwire.client.addresses import parse_addresses
from kraftwire.errors import UsageError
from kraftwire.faults.rows import new_rule
from kraftwire.faults.rules import FaultRule
from kraftwire.faults.vocabulary import FaultVocabulary
from kraftwire.properties import Properties
from kraftwire.protocol.endpoint import address_text
from kraftwire.proxy.server import Proxy
from kraftwire.proxy.settings import (
    ProxySettings,
    listen_address,
    listener_tls,
    upstream_security,
)
from kraftwire.testing.trio_thread import TrioThread
from kraftwire.transport.client_security import ClientSecurity

if TYPE_CHECKING:
    from kraftwire.client.security import Given

# So many of the last lines for people are kept.
_LINES_MAX = 1000

open_proxies: list[ThreadedProxy] = []
"""Those of this process, for the reports of tests that fail."""


class ThreadedProxy(FaultVocabulary):
    """A proxy, and what it does to requests; made by `proxy`.

    Order: entering starts it, and returns once it accepts connections; leaving ends it and its
    connections. `bootstrap_servers` is its address for clients. Each rule is a context that removes
    it, and has `count`, `wait`, `requests` and `remove`. If the block fails, a note on the error is
    the `summary`. Raises: OSError if a port is taken; ApiError, SecurityError or WireError if the
    cluster does not answer; UsageError.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self.bootstrap_servers = ""
        self._settings = settings
        self._said: deque[str] = deque(maxlen=_LINES_MAX)
        self._thread = TrioThread("kraftwire-proxy")

    def __enter__(self) -> Self:
        if self in open_proxies:
            raise UsageError("the proxy is open already")
        self._proxy = Proxy(self._settings, announce=lambda _: None, say=self._said.append)
        self._thread = TrioThread("kraftwire-proxy")
        try:
            self._thread.open()
            self.bootstrap_servers = address_text(self._thread.start(self._proxy.run))
        except BaseException:
            self._thread.close()
            raise
        open_proxies.append(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        open_proxies.remove(self)
        self._thread.close()
        if error is not None:
            error.add_note(f"the proxy {self.bootstrap_servers}:\n{self.summary()}")

    def add_rule(self, row: Mapping[str, Any]) -> FaultRule:
        """Put the rule of a row in force. Raises: UsageError."""
        rule = new_rule(row)
        try:
            return self._thread.call(lambda: self._proxy.add_rule(rule))
        except trio.RunFinishedError:
            raise UsageError("the proxy is not open") from None

    def summary(self) -> str:
        """Return what was requested, by client, what each rule did, and what the proxy said."""

        def lines() -> list[str]:
            return [*self._proxy.summary(), *self._said]

        try:
            found = self._thread.call(lines)
        except trio.RunFinishedError:
            found = lines()
        return "\n".join(found)


def proxy(
    upstream: str | Iterable[str],
    *,
    listen: str = "127.0.0.1:0",
    advertised_host: str | None = None,
    capture: str | os.PathLike[str] | None = None,
    command_config: Given = None,
    listener_config: Mapping[str, object] | str | os.PathLike[str] | None = None,
) -> ThreadedProxy:
    """Return a proxy in front of a cluster, for use as a context manager.

    `upstream` has brokers, or controllers, of the cluster: one that answers is enough. The options
    are those of the command `kraftwire proxy`; configurations are properties or files of them. What
    people should know of these is a Python warning. Raises: UsageError; OSError for a file.
    """
    security = tls = None
    if isinstance(command_config, ClientSecurity):
        security = upstream_security(command_config.settings.properties)
    elif command_config is not None:
        security = upstream_security(Properties.given(command_config, "command_config"))
    for line in security.warnings if security else ():
        warnings.warn(line, stacklevel=2)
    if listener_config is not None:
        tls = listener_tls(Properties.given(listener_config, "listener_config"))
    return ThreadedProxy(
        ProxySettings(
            upstream=parse_addresses(upstream, "upstream"),
            listen=listen_address(listen),
            advertised_host=advertised_host,
            upstream_security=security,
            listener_tls=tls,
            capture=None if capture is None else os.fspath(capture),
        )
    )
