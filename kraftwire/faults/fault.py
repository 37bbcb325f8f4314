"""What happens to the requests of a rule: data, which a server carries out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Literal

from kraftwire.errors import UsageError
from kraftwire.protocol.error_codes import ErrorCode

Drop = Literal["before", "after"]
"""When a connection ends: before a request is passed on, or in place of its response."""

Direction = Literal["both", "to_server", "to_client"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to the requests of a rule. The fields are used in their order.

    `drop`: the connection ends. `black_hole`: from this request on nothing more is passed on in a
    direction, and the connection stays, until a peer ends it; also after the rule's end.
    `error`: the response, and the request is not carried out, or with the rule's names these parts
    of it are not; `is_whole` refuses all of it anyhow. `change_request` changes it in place.
    `holds_request`: it waits for the rule's end. A change of the response is in place, or returns
    another one. `holds_response` waits for the rule's end, then a time within `delay_s` passes
    (seconds). `bytes_per_s`: the response is written so slowly. `hang_up_at`: after so many bytes
    of it, the four of its length included, the connection ends.
    """

    drop: Drop | None = None
    black_hole: Direction | None = None
    error: ErrorCode | None = None
    is_whole: bool = False
    change_request: Callable[[Any], object] | None = None
    holds_request: bool = False
    values: Mapping[str, Any] | None = None
    change_response: Callable[[Any, int], Any] | None = None
    holds_response: bool = False
    delay_s: tuple[float, float] = (0.0, 0.0)
    bytes_per_s: float | None = None
    hang_up_at: int | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether requests are only counted."""
        return self == NOTHING

    @property
    def needs_body(self) -> bool:
        """Whether the request has to be decoded to apply it."""
        return self.error is not None or self.change_request is not None


NOTHING: Final = Fault()


def error_code(name: Any) -> ErrorCode:
    """Return the error with a name. Raises: UsageError."""
    found = next((each for each in ErrorCode if each.name == name), None)
    if found is None:
        near = get_close_matches(str(name), [each.name for each in ErrorCode], n=1, cutoff=0.6)
        raise UsageError(f"there is no error {name!r}, only such as {(*near, 'NOT_CONTROLLER')[0]}")
    return found
