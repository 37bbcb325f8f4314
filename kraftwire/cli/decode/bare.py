"""The options of `kraftwire decode` for bare frames.

Owns which of them are refused, and the API that bare responses answer.
"""

from __future__ import annotations

from typing import Any

from kraftwire import messages
from kraftwire.cli.decode.refusals import given
from kraftwire.errors import UsageError

__all__ = ["bare_api"]

_OF_BARE = {"--response": "is_response", "--version": "version"}
_NOT_OF_BARE = {
    "--keylog": "keylog", "--family": "family", "--offset": "offset", "--key": "key",
}  # fmt: skip


def bare_api(options: dict[str, Any], *, is_bare: bool) -> tuple[int, int] | None:
    """Key and version of the requests that bare responses answer; None for all other inputs.

    Raises: UsageError unless both are given for responses, and only for these; for options of bare
    frames with other inputs, and the reverse.
    """
    asked = given(options, _NOT_OF_BARE if is_bare else _OF_BARE)
    if asked:
        only = "not for bare frames" if is_bare else "only for --input hex and --input frames"
        raise UsageError(f"{asked}: {only}")
    names, version = options["api"], options["version"]
    if not options["is_response"]:
        if version is not None:
            raise UsageError("--version is for --response: requests have it in their headers")
        return None
    if len(names) != 1 or version is None:
        raise UsageError("bare responses need --api and --version of their requests")
    name = names[0]
    by_name = {text.lower(): key for key, text in messages.API_NAMES.items()}
    key = int(name) if name.isdecimal() else by_name.get(name.lower())
    if key is None:
        raise UsageError(f"there is no API {name!r}")
    return key, version
