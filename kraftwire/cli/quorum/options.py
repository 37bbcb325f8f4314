"""How `kraftwire quorum` reaches a cluster: options before or after the subcommand, and a file.

Owns the connection options and `--command-config`; a connection option of the subcommand wins over
the same one before it.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kraftwire.cli.output import say
from kraftwire.cli.security import client_security
from kraftwire.client import Admin
from kraftwire.errors import UsageError
from kraftwire.properties import Properties
from kraftwire.properties_file import read_properties

if TYPE_CHECKING:
    from kraftwire.transport.client_security import ClientSecurity

_Function = TypeVar("_Function", bound=Callable[..., Any])

TIMEOUT_S = 60.0
# If the output is not a terminal, retries are reported only after this time.
_QUIET_S = 5.0
# Kafka's keys, in milliseconds, and the parameters of Admin that they set, in seconds.
_SECONDS = {
    "request.timeout.ms": "request_timeout_s",
    "retry.backoff.ms": "retry_backoff_s",
    "retry.backoff.max.ms": "retry_backoff_max_s",
}
_TIMEOUT_KEY = "default.api.timeout.ms"


class TerseError(click.ClickException):
    """An error that kafka-metadata-quorum reports in one line with exit code 1."""

    exit_code = 1


@dataclass
class QuorumConnection:
    """Addresses and time-outs. Units: `timeout_s` is in seconds, for the whole command."""

    bootstrap_server: str | None = None
    bootstrap_controller: str | None = None
    config: Properties = field(default_factory=lambda: Properties.of({}, ""))
    config_path: str | None = None
    timeout_s: float = TIMEOUT_S
    security: ClientSecurity | None = None
    _started: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """The time that is left for the command, in seconds."""
        return max(0.0, self._started + self.timeout_s - time.monotonic())

    def admin(self, *, timeout_s: float | None = None) -> Admin:
        """Return a client with the remaining time, or the given time-out.

        Raises: UsageError for invalid addresses.
        """
        if timeout_s is None:
            # A call that starts too late still makes one attempt.
            timeout_s = max(0.1, self.left_s)
        options: dict[str, Any] = {
            name: _milliseconds(self.config, key) / 1000
            for key, name in _SECONDS.items()
            if self.config.has(key)
        }
        if self.config.has("client.id"):
            options["client_id"] = self.config.text("client.id")
        return Admin(
            bootstrap_servers=self.bootstrap_server,
            bootstrap_controllers=self.bootstrap_controller,
            timeout_s=timeout_s,
            on_retry=self._say_retry(),
            security=self.security,
            **options,
        )

    def _say_retry(self) -> Callable[[str], None]:
        """Return a function that reports each problem once: at once on a terminal, else later."""
        said: set[str] = set()
        quiet_s = 0.0 if sys.stderr.isatty() else _QUIET_S

        def report(problem: str) -> None:
            is_time = time.monotonic() - self._started >= quiet_s
            if is_time and problem not in said:
                said.add(problem)
                limit = f"retrying for at most {self.timeout_s:.3g} s"
                say(f"kraftwire quorum: {problem}; {limit}")

        return report


_OPTIONS = (
    click.option(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help="Brokers to connect to; one that answers is enough.",
    ),
    click.option(
        "--bootstrap-controller",
        metavar="HOST:PORT,...",
        help="Controllers to connect to, instead of brokers.",
    ),
    click.option(
        "--command-config",
        metavar="FILE",
        help="Kafka's properties of the client, such as security.protocol; for add-controller, of "
        "the controller.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Time limit of the whole command; default 60.",
    ),
)


def connection_options(function: _Function) -> _Function:
    """Give a command the connection options."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def join_options(before: dict[str, Any], after: dict[str, Any]) -> QuorumConnection:
    """Combine the connection options before and after a subcommand's name.

    Raises: TerseError unless exactly one kind of address is given; UsageError for an unusable
    configuration.
    """
    names = ("bootstrap_server", "bootstrap_controller", "command_config", "timeout")
    chosen = {n: before.get(n) if after.get(n) is None else after[n] for n in names}
    server, controller = chosen["bootstrap_server"], chosen["bootstrap_controller"]
    path = chosen["command_config"]
    config = read_config(path) if path else Properties.of({}, "")
    if server and controller:
        raise TerseError(
            "argument --bootstrap-server: not allowed with argument --bootstrap-controller."
        )
    if not server and not controller:
        raise TerseError(
            "one of the arguments --bootstrap-server --bootstrap-controller is required."
        )
    security = client_security(path, "quorum", to_controllers=not server) if path else None
    timeout_s = chosen["timeout"]
    if timeout_s is None:
        has_key = config.has(_TIMEOUT_KEY)
        timeout_s = _milliseconds(config, _TIMEOUT_KEY) / 1000 if has_key else TIMEOUT_S
    return QuorumConnection(server, controller, config, path, timeout_s, security)


def read_config(path: str) -> Properties:
    """Read a properties file.

    Raises: TerseError if there is no such file; OSError if it cannot be read.
    """
    try:
        return Properties(read_properties(path), path)
    except FileNotFoundError as error:
        raise TerseError(f"Properties file {path} does not exist.") from error


def _milliseconds(config: Properties, key: str) -> int:
    text = config.text(key) or ""
    if re.fullmatch(r"[0-9]{1,19}", text) is None or int(text) == 0:
        raise UsageError(f"{key}: expected milliseconds above 0, found {text!r}")
    return int(text)
