"""Captures, decoded by the decode tool in this process."""

from __future__ import annotations

import io
import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kraftwire import messages
from kraftwire.capture.capture import Capture
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.jsonl import JsonLines
from kraftwire.decode.options import FilterOptions, Options
from kraftwire.inspect.run.inputs import Inputs
from kraftwire.inspect.run.run import Run
from kraftwire.inspect.run.totals import Totals
from tests.support.messages.vectors import current_names

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ("quorum", "clients", "sasl")
_RECORDS = ("records", "unalignedRecords")


@dataclass(frozen=True, slots=True)
class Decoded:
    """The lines of a run, its messages about unreadable inputs, and its totals."""

    text: bytes
    problems: list[str]
    totals: Totals

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines as objects."""
        return [json.loads(line) for line in self.text.splitlines()]


def rotated(folder: Path, count: int) -> list[Path]:
    """A recording in this many files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    raw = lzma.decompress(golden("quorum").read_bytes())
    at, made = 24, []
    for number in range(count):
        begin = at
        while at < len(raw) * (number + 1) // count:
            at += 16 + int.from_bytes(raw[at + 8 : at + 12], "little")
        made.append(folder / f"trace_{number}.pcap")
        made[-1].write_bytes(raw[:24] + raw[begin:at])
    return made


def decode(*paths: Path, options: FilterOptions | None = None, **form: Any) -> Decoded:
    """Decode inputs into JSON lines; `form` as of `RecordsForm`."""
    out = io.BytesIO()
    problems: list[str] = []
    wanted = Options(
        records=form.get("detail", "full"),
        show_secrets=form.get("show_secrets", False),
        filters=options or FilterOptions(),
    )
    memory = Memory()
    run = Run(wanted, JsonLines(out, settings=wanted.settings(memory)), memory)
    Inputs(run, problems.append).read([str(path) for path in paths])
    run.finish()
    return Decoded(out.getvalue(), problems, run.totals)


def decoded_frames(path: Path, **form: Any) -> list[Frame]:
    """The frames of a capture in the form that renderers get."""
    decoder = FrameDecoder(Settings(RecordsForm(**form)))
    return [decoder.decode(frame) for frame in Capture(str(path))]


def golden(name: str) -> Path:
    """A small capture that comes with the tests."""
    return ROOT / "tests" / "golden" / "captures" / f"{name}.pcap.xz"


def shared(*parts: str) -> Path:
    """A file of the large recordings next to the project; skips the test if it is missing."""
    path = ROOT.parent / "shared" / Path(*parts)
    if not path.exists():
        pytest.skip(f"the large recordings are missing: {path.name}")
    return path


def expected(path: Path) -> list[dict[str, Any]]:
    """What Kafka's own readers print for a capture's frames, with the current names of fields."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        row.pop("id", None)
        key, body = row["key"], row["body"]
        if key in messages.API_NAMES and isinstance(body, dict):
            cls = (messages.request_class if row["dir"] == "Q" else messages.response_class)(key)
            row["body"] = current_names(cls.NAME, row["version"], body)
    return rows


def comparable(line: dict[str, Any]) -> dict[str, Any]:
    """A line of ours in the form of `expected`."""
    return {
        "dir": "Q" if line["direction"] == "request" else "R",
        "key": line["apiKey"],
        "version": line["apiVersion"],
        "remaining": line["remaining"],
        "header": line["header"],
        "body": _without_records(line["body"]),
    }


def _without_records(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "" if key in _RECORDS and isinstance(held, list) else _without_records(held)
            for key, held in value.items()
        }
    if isinstance(value, list):
        return [_without_records(each) for each in value]
    return value
