"""The options that `decode`, `stats`, `story` and `records` share.

Owns their names and help, and how they become the options of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import click

from kraftwire.capture.tls.ciphers import ensure_ciphers
from kraftwire.capture.tls.keylog import KeyLog
from kraftwire.cli.decoding.run import Reading
from kraftwire.decode.filters.frame_filter import FilterOptions
from kraftwire.decode.options import Options
from kraftwire.errors import UsageError
from kraftwire.records.messages import FAMILIES

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]

CONTEXT = {"help_option_names": ["-h", "--help"]}

_REPEATABLE = "Repeatable, comma lists; !VALUE or ^VALUE excludes."


def listed(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> Any:  # noqa: ARG001
    """Return the values of a repeatable option that accepts comma-separated lists."""
    parts = tuple(part.strip() for each in value for part in each.split(",") if part.strip())
    if value and not parts:
        raise UsageError(f"{option.opts[-1]} names nothing")
    return parts


def _filter(name: str, metavar: str, help_text: str) -> Decorator[F]:
    return click.option(name, multiple=True, metavar=metavar, callback=listed, help=help_text)


def _all_of(*decorators: Decorator[F]) -> Decorator[F]:
    """Apply decorators so that their options are listed in this order."""

    def apply(function: F) -> F:
        for each in reversed(decorators):
            function = each(function)
        return function

    return apply


input_options: Decorator[Any] = _all_of(
    click.argument("inputs", nargs=-1, required=True, metavar="FILE..."),
    _filter("--api", "NAME", "API by name or key, such as Fetch, *Group*, 52. " + _REPEATABLE),
    _filter("--api-version", "N", "API version, or a range such as 3-5 or 12+."),
    _filter("--client-id", "ID", "Client id of the request; * and ? are wildcards."),
    _filter("--connection", "END", "Host, host:port, :port or client:port-server:port."),
    _filter("--topic", "NAME", "Topic named in the body, also by its id."),
    _filter("--partition", "N", "Partition, of the topic if --topic is given."),
    _filter("--group", "ID", "Group named in the body, or in a record of __consumer_offsets."),
    _filter("--error", "NAME", "Error in the response, by name or code; any, none."),
    click.option(
        "--min-latency", "min_latency_ms", type=float, metavar="MS",
        help="Minimum latency of the response.",
    ),
    click.option(
        "--since", metavar="TIME",
        help="ISO 8601 (UTC), seconds since the epoch, or +SECONDS since the first frame.",
    ),
    click.option("--until", metavar="TIME", help="As --since."),
    click.option("--keylog", metavar="FILE", help="TLS secrets, in the format of SSLKEYLOGFILE."),
    click.option(
        "--merge/--no-merge", "is_merging", default=True,
        help="Merge overlapping captures by timestamp (default), or read them in order.",
    ),
)  # fmt: skip

log_file_options: Decorator[Any] = _all_of(
    _filter("--offset", "N", "Log files: offsets, or a range such as 3-5 or 12+."),
    _filter("--key", "TEXT", "Log files: keys of records; * and ? are wildcards."),
    click.option(
        "--family", type=click.Choice([*FAMILIES.values(), "none"]),
        help="Log files: which of Kafka's own records, if the folder's name does not say.",
    ),
)  # fmt: skip

secrets_option: Decorator[Any] = click.option(
    "--show-secrets", is_flag=True, help="Show passwords, tokens and keys."
)
quiet_option: Decorator[Any] = click.option(
    "-q", "--quiet", is_flag=True, help="No totals and no progress on standard error."
)


def reading(values: dict[str, Any], **more: Any) -> Reading:
    """Return what to read, and how, by the values of the shared options.

    `more` are further options of the run. Raises: UsageError if nothing can be decrypted.
    """
    names = [each.name for each in fields(FilterOptions) if each.name in values]
    options = Options(
        show_secrets=values.get("show_secrets", False),
        family=values.get("family"),
        keys=_keys(values["keylog"]),
        filters=FilterOptions(**{name: values[name] for name in names}),
        **more,
    )
    return Reading(
        inputs=values["inputs"],
        options=options,
        is_merging=values["is_merging"],
        is_following=values.get("follow", False),
        is_quiet=values["quiet"],
    )


def _keys(path: str | None) -> KeyLog | None:
    if path is None:
        return None
    ensure_ciphers()
    return KeyLog.read(path)
