"""`kraftwire message`: messages between bytes and JSON, one JSON object per line.

Owns the line format: what a line must hold, what its answer holds, and that no line, however bad,
ends the run. The codec is `kraftwire.messages`. Imports no click, to start at once."""

from __future__ import annotations

import json
import os
import stat
import sys
from binascii import unhexlify

from kraftwire.capture.bounded_lines import read_lines
from kraftwire.cli.output import put, say
from kraftwire.errors import KraftwireError, StorageError, UsageError
from kraftwire.limits import FRAME_SIZE_MAX
from kraftwire.printable import printable

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from kraftwire.wire.message import Message

    Answer = dict[str, Any]

# `kraftwire message` refuses a longer line, and skips it without keeping it: the largest frame has
# twice its size in hex digits, less in base64, and a mebibyte is enough for the other keys.
MESSAGE_LINE_BYTES_MAX = 2 * FRAME_SIZE_MAX + 1024 * 1024

# Limits of memory for `kraftwire message`, relative to the bytes of a message or line: for the
# objects of a message, for its JSON (a generous estimate), and for JSON that is read.
MESSAGE_DECODED_FREE = 24 * 1024 * 1024
MESSAGE_DECODED_RATIO = 6
MESSAGE_SHOWN_FREE = 40 * 1024 * 1024
MESSAGE_SHOWN_RATIO = 12
MESSAGE_JSON_FREE = 16 * 1024 * 1024
MESSAGE_JSON_RATIO = 9


HELP = """\
Usage: kraftwire message decode|encode

Translate messages between bytes and JSON. Reads one JSON object per line from
standard input and writes one line for each, in the same order, as soon as it is
read.

  decode   {"name", "version", "hex"}   to  {"name", "version", "json", "rest"}
  encode   {"name", "version", "json"}  to  {"name", "version", "hex"}

  name     the schema's name: VoteRequest, RequestHeader, LeaderChangeMessage,
           OffsetCommitKey; `kraftwire schema` lists them
  version  a number
  hex      the body's bytes, without frame and header
  json     the body as Kafka's JSON converters print it, with fields of type
           records as base64
  rest     how many bytes are left after the message

Other keys are ignored. The answer to a bad line is {"name", "version",
"error"}, and the run goes on; such an answer, given as a line, is passed on.
Exit code: 0 if every line was translated, 3 if one was not, 2 for wrong usage.

Example:
  echo '{"name": "VoteRequest", "version": 0, "hex": "000100"}' |
    kraftwire message decode
"""

_EXIT_SOME_FAILED = 3
_NAME_SIZE_MAX = 200

# Shorter lines and messages need little memory in any case.
_LIGHT_BYTES = 128 * 1024
# The most memory that JSON needs as objects, by the characters that begin or end them.
_JSON_COSTS = {b"{": 232, b"[": 88, b",": 40, b'"': 25}
# The memory that the JSON of a decoded message needs for each struct and each value.
_STRUCT_BYTES = 250
_VALUE_BYTES = 60

# A line without this that has an error is another command's answer, whose error is passed on.
_GIVEN = {"decode": "hex", "encode": "json"}
_to_text = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def message(arguments: list[str]) -> int:
    """Run ``kraftwire message``; returns the exit code. Raises: UsageError."""
    if "-h" in arguments or "--help" in arguments:
        put(*HELP.splitlines())
        return 0
    if len(arguments) != 1 or arguments[0] not in _ACTIONS:
        found = f"found {' '.join(arguments)!r}" if arguments else "found nothing"
        raise UsageError(f"message wants decode or encode, {found}; see kraftwire message --help")
    stdin = sys.stdin.buffer
    if stdin.isatty():
        say("kraftwire: reading JSON from the terminal, one object per line")
    is_fine = translate(arguments[0], stdin, sys.stdout.buffer)
    return 0 if is_fine else _EXIT_SOME_FAILED


def translate(action: str, source: BinaryIO, target: BinaryIO) -> bool:
    """Answer every line of the source; returns whether all of them were translated.

    Order: an answer is flushed before the next line is read, unless the source is a file, so that
    another program can ask and wait.
    """
    is_waited_for = not _is_file(source)
    is_fine = True
    for line in _lines(source):
        reply = answer(action, line)
        is_fine &= "error" not in reply
        text = _to_text(reply)
        # Each of these forms may be large: none is kept while the next one is made.
        reply.clear()
        target.write(printable(text).encode())
        target.write(b"\n")
        del text
        if is_waited_for:
            target.flush()
    target.flush()
    return is_fine


def answer(action: str, line: bytes | bytearray | None) -> Answer:
    """Return the answer to one line; anything wrong with the line becomes its `error`.

    None stands for a line that is too long to be kept.
    """
    reply: Answer = {"name": None, "version": None}
    try:
        request = _parse(line)
        reply["name"] = _scalar(request.get("name"))
        reply["version"] = _scalar(request.get("version"))
        if _GIVEN[action] not in request and isinstance(request.get("error"), str):
            raise UsageError(request["error"])
        reply |= _ACTIONS[action](request)
    except KraftwireError as error:
        reply["error"] = str(error)
    except RecursionError:
        reply["error"] = "the JSON is nested too deeply"
    return reply


def _decode(request: Answer) -> Answer:
    name, version = _name_and_version(request)
    data = _bytes(_required(request, "hex"))
    del request["hex"]
    from kraftwire.messages import find

    decoded, end = _decoded(find(name), data, version)
    return {"json": decoded.to_json(version), "rest": len(data) - end}


def _decoded(cls: type[Message], data: bytes, version: int) -> tuple[Message, int]:
    """Return the message and its end. Raises: WireError, also for a message of far too many values.
    """
    if len(data) < _LIGHT_BYTES:
        return cls.decode(data, version)
    from kraftwire.decode.limits import FrameBudget
    from kraftwire.wire.size_estimate import decode_bounded

    free, ratio = MESSAGE_DECODED_FREE, MESSAGE_DECODED_RATIO
    decoded, end = decode_bounded(cls, data, version, 0, free=free, ratio=ratio)
    budget = FrameBudget(_STRUCT_BYTES, _VALUE_BYTES, MESSAGE_SHOWN_FREE, MESSAGE_SHOWN_RATIO)
    if budget.is_too_much(decoded, len(data), len(data)):
        raise UsageError("the message has too many values for its bytes to be shown as JSON")
    return decoded, end


def _encode(request: Answer) -> Answer:
    name, version = _name_and_version(request)
    data = _required(request, "json")
    from kraftwire.messages import find

    return {"hex": find(name).from_json(data, version).encode(version).hex()}


_ACTIONS: dict[str, Callable[[Answer], Answer]] = {"decode": _decode, "encode": _encode}
# For shell completion.
message.actions = tuple(_ACTIONS)  # type: ignore[attr-defined]


def _parse(line: bytes | bytearray | None) -> Answer:
    if line is None or len(line) > MESSAGE_LINE_BYTES_MAX:
        raise UsageError(f"the line is longer than {MESSAGE_LINE_BYTES_MAX} bytes")
    _check_json_size(line)
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the line is not UTF-8 at byte {error.start}") from None
    try:
        request = _from_text(text)
    except json.JSONDecodeError as error:
        detail = f"{error.msg} at column {error.pos + 1}" if text.strip() else "the line is empty"
        raise UsageError(f"the line is not JSON: {detail}") from None
    except ValueError as error:
        # NaN and Infinity, which are not JSON, and integers too long for Python to read.
        raise UsageError(f"the line is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise UsageError(f"a line must be a JSON object, found {_kind(request)}")
    return request


def _check_json_size(line: bytes | bytearray) -> None:
    """Check that JSON does not become far larger as objects. Raises: UsageError if it does."""
    size = len(line)
    if size < _LIGHT_BYTES:
        return
    cost = sum(line.count(mark) * each for mark, each in _JSON_COSTS.items())
    if cost > MESSAGE_JSON_FREE + MESSAGE_JSON_RATIO * size:
        raise UsageError(f"the line has too many values for its {size} bytes")


def _required(request: Answer, key: str) -> Any:
    if key not in request:
        raise UsageError(f"the key {key!r} is missing")
    return request[key]


def _name_and_version(request: Answer) -> tuple[str, int]:
    name, version = _required(request, "name"), _required(request, "version")
    if not isinstance(name, str) or len(name) > _NAME_SIZE_MAX:
        raise UsageError(f"'name' must be a message's name, found {_kind(name)}")
    if not isinstance(version, int) or isinstance(version, bool):
        raise UsageError(f"'version' must be an integer, found {_kind(version)}")
    return name, version


def _bytes(text: Any) -> bytes:
    if not isinstance(text, str):
        raise UsageError(f"'hex' must be a string, found {_kind(text)}")
    try:
        return unhexlify(text)
    except ValueError:
        pass
    for position, digit in enumerate(text):
        if digit not in "0123456789abcdefABCDEF":
            raise UsageError(
                f"'hex' has {digit!r} at position {position}, which is not a hex digit"
            )
    raise UsageError(f"'hex' has {len(text)} digits, two are needed for each byte")


def _kind(value: Any) -> str:
    """Describe a JSON value for an error; a long one by its type alone."""
    if isinstance(value, str) and len(value) > _NAME_SIZE_MAX:
        return f"a string of {len(value)} characters"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    return json.dumps(value)


def _scalar(value: Any) -> Any:
    """Return the value if an answer may repeat it: not nested, and valid in JSON."""
    if isinstance(value, dict | list) or value in (float("inf"), float("-inf")):
        return None
    return value


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not allowed")


_from_text = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _lines(source: BinaryIO) -> Iterator[bytes | bytearray | None]:
    """Yield the lines; None for one that is too long. Raises: StorageError if they cannot be read.
    """
    try:
        yield from read_lines(source, MESSAGE_LINE_BYTES_MAX)
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror}", file="standard input") from error


def _is_file(source: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(source.fileno()).st_mode)
    except OSError:  # not a real file at all
        return False
