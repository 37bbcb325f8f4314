"""Functions that are built when a version is first used."""

from __future__ import annotations

import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from codegen.hot import HOT
from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.wire.functions import build
from kraftwire.wire.plans import python_decoder, python_encoder
from tests.support.vectors import vectors

TOPICS = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=3)], timeout_ms=5)


def versions(cls: Any) -> range:
    """The versions of a message."""
    return range(cls.VERSIONS.low, cls.VERSIONS.high + 1)


def forget(cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove from a class what was built for it, until the end of the test."""
    monkeypatch.setattr(build, "_builders", {})
    for name in ("_DECODERS", "_ENCODERS", "_DECODE", "_ENCODE"):
        monkeypatch.setattr(cls, name, {})


@pytest.mark.parametrize("name", sorted(HOT))
def test_what_is_built_is_what_would_be_generated(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same text, so what holds for generated functions holds for all."""
    cls = messages.find(name)
    module = sys.modules[cls.__module__]
    assert list(cls._DECODERS) == list(cls._ENCODERS) == list(versions(cls))
    generated = Path(str(module.__file__)).read_text("utf-8")
    forget(cls, monkeypatch)
    for version in versions(cls):
        for function in (python_decoder(cls, version), python_encoder(cls, version)):
            tables, *functions = function.__globals__["__loader__"].get_source("").split("\n\n\n")
            unknown = [part for part in (*tables.splitlines(), *functions) if part not in generated]
            assert not unknown, unknown[0]


def test_other_messages_carry_no_functions() -> None:
    """Functions made the package large."""
    for name in set(messages.names()) - HOT:
        module = sys.modules[messages.find(name).__module__]
        assert not [each for each in vars(module) if each.startswith(("decode_", "encode_"))]


def test_every_version_of_every_message_can_be_built() -> None:
    """Golden messages are read to their ends, and written again byte for byte."""
    for name in set(messages.names()) - HOT:
        cls = messages.find(name)
        for vector in vectors().get(name, []):
            message, end = python_decoder(cls, vector.version)(vector.data, 0, 1 << 20)
            assert end == len(vector.data), str(vector)
            assert python_encoder(cls, vector.version)(message) == vector.data, str(vector)


def test_a_version_is_built_when_it_is_used_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that never meets a version does not pay for it."""
    forget(CreateTopicsRequest, monkeypatch)
    first = python_encoder(CreateTopicsRequest, 5)
    assert python_encoder(CreateTopicsRequest, 5) is first
    assert list(CreateTopicsRequest._ENCODERS) == [5]
    assert not CreateTopicsRequest._DECODERS


def test_versions_of_equal_layout_share_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds whichever comes first."""
    forget(CreateTopicsRequest, monkeypatch)
    assert python_decoder(CreateTopicsRequest, 3) is python_decoder(CreateTopicsRequest, 2)
    assert python_decoder(CreateTopicsRequest, 3) is not python_decoder(CreateTopicsRequest, 5)


def test_a_traceback_shows_the_source_that_was_built() -> None:
    """A traceback through a built function shows its source lines."""
    wrong: Any = CreateTopicsRequest(topics=[TOPICS])  # type: ignore[list-item]
    with pytest.raises(AttributeError) as caught:
        python_encoder(CreateTopicsRequest, 5)(wrong)
    told = traceback.format_exception(caught.value)
    assert any(
        "kraftwire.messages.create_topics_request.CreateTopicsRequest" in line
        and "in encode_creatable_topic_5_array" in line
        and "s = o.name.encode()" in line
        for line in told
    ), "".join(told)


def test_errors_name_the_field_as_for_all_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow reader and writer explain what a built function stumbles over."""
    forget(CreateTopicsRequest, monkeypatch)
    data = TOPICS.encode(5)
    with pytest.raises(WireError, match=r"CreateTopicsRequest v5 validateOnly at offset"):
        CreateTopicsRequest.decode(data[:-2], 5)
    with pytest.raises(WireError, match=r"topics\[0\].numPartitions"):
        CreateTopicsRequest(topics=[CreatableTopic(num_partitions=1 << 40)]).encode(5)


def test_threads_may_meet_a_version_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread sees a function that calls one that does not exist yet."""
    data = {version: TOPICS.encode(version) for version in range(4, 8)}
    forget(CreateTopicsRequest, monkeypatch)
    start = Barrier(8)

    def use(number: int) -> bool:
        start.wait()
        version = 4 + number % 4
        message, _ = CreateTopicsRequest.decode(data[version], version)
        return message == TOPICS and message.encode(version) == data[version]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(8)))
