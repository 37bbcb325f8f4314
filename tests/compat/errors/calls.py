"""The protocol of the programs that make calls: a JSON line for each, and one as its answer.

`{"api", "servers", "topic", "name"}` is answered with `{"error"}`: null if the call returned, the
name of Kafka's error or of the exception if it raised. With `{"is_in_result": true}` it returned,
and the error is in the result. `{"op": "list"}` is answered with `{"apis"}`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# What a call may take; clients give up a little earlier.
SECONDS = 5
# A heartbeat follows the last answer after so long.
HEARTBEAT_MS = 100


@dataclass(frozen=True, slots=True)
class Scene:
    """What a call is about: a topic with one partition and records, and a name that is new."""

    servers: str
    topic: str
    name: str


class InResult(Exception):
    """A call returned, and its result has an error. The only argument is the error's name."""


Call = Callable[[Scene], object]


def serve(calls: Mapping[str, Call], name_of: Callable[[Exception], str]) -> None:
    """Make calls until the input ends."""
    for line in sys.stdin:
        question = json.loads(line)
        if "op" in question:
            answer: dict[str, object] = {"apis": sorted(calls)}
        else:
            call = calls[question.pop("api")]
            answer = _make(call, Scene(**question), name_of)
        print(json.dumps(answer), flush=True)


def _make(call: Call, scene: Scene, name_of: Callable[[Exception], str]) -> dict[str, object]:
    try:
        call(scene)
    except InResult as found:
        return {"error": found.args[0], "is_in_result": True}
    except Exception as error:  # noqa: BLE001 - what a program sees is the result
        return {"error": name_of(error)}
    return {"error": None}
