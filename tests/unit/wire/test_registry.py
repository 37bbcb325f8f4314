"""Looking messages up: by name, by API key, one module at a time."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.wire.registry import Registry


def test_messages_are_found_by_name() -> None:
    """The class is the one that its module has, not a copy."""
    assert messages.find("FetchRequest") is FetchRequest


def test_requests_and_responses_are_found_by_api_key() -> None:
    """This is what a connection does with every frame."""
    assert messages.request_class(1) is FetchRequest
    assert messages.response_class(1) is FetchResponse


def test_every_listed_message_can_be_found() -> None:
    """The table of modules and the modules are written together and have to agree."""
    for name in messages.names():
        assert name == messages.find(name).NAME
    assert list(messages.names()) == sorted(messages.names())


def test_the_tables_of_apis_describe_the_request_classes() -> None:
    """ApiVersions answers are made from these tables, and must not promise anything else."""
    for key, (low, high) in messages.API_VERSIONS.items():
        facts = messages.request_class(key).facts()
        assert (facts.api_key, facts.versions.low, facts.versions.high) == (key, low, high)
        assert facts.name == f"{messages.API_NAMES[key]}Request"
        is_flexible = messages.API_FLEXIBLE[key] <= high
        assert is_flexible == (high in facts.flexible)


def test_records_are_listed_by_their_type() -> None:
    """A record has only a number; its log decides what the number means."""
    for key, name in messages.METADATA_RECORDS.items():
        found = messages.find(name)
        assert ("metadata", key) == (found.KIND, found.API_KEY)
    for records in messages.COORDINATOR_RECORDS.values():
        for key, (key_name, value_name) in records.items():
            assert messages.find(key_name).API_KEY == messages.find(value_name).API_KEY == key
            assert messages.find(key_name).KIND == "coordinator-key"
            assert messages.find(value_name).KIND == "coordinator-value"


def test_records_of_other_logs_do_not_take_types_of_the_metadata_log() -> None:
    """The remote log's records number their types from 0 as well."""
    assert messages.METADATA_RECORDS[0] == "RegisterBrokerRecord"
    assert messages.METADATA_RECORDS[3] == "PartitionRecord"


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    """Most wrong names are misspelled ones."""
    with pytest.raises(UsageError, match=r"no message 'VoteRequst'; did you mean VoteRequest"):
        messages.find("VoteRequst")
    with pytest.raises(UsageError, match=r"^there is no message '12'$"):
        messages.find("12")


def test_an_unknown_api_key_is_a_usage_error() -> None:
    """Keys come from peers; a KeyError would look like a bug of ours."""
    for look_up in (messages.request_class, messages.response_class):
        with pytest.raises(UsageError, match="no API with key 4711"):
            look_up(4711)


def test_a_message_loads_no_other_message() -> None:
    """Loading all of them takes a hundred times longer than loading one."""
    code = (
        "import sys; from kraftwire import messages; messages.find('VoteRequest'); "
        "print(*(m for m in sys.modules if m.startswith('kraftwire.messages.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kraftwire.messages.vote_request"]


def test_a_registry_works_for_any_package() -> None:
    """Messages generated elsewhere register in a separate package."""
    registry = Registry(
        "kraftwire.messages", {"FetchRequest": "fetch_request"}, {7: "FetchRequest"}, {}
    )
    assert registry.request_class(7) is FetchRequest
    assert registry.names() == ("FetchRequest",)
    with pytest.raises(UsageError):
        registry.find("FetchResponse")


@pytest.mark.parametrize("key", [None, [], 5, True, 1.0])
def test_a_key_of_the_wrong_type_is_a_usage_error(key: Any) -> None:
    """None often comes from a missing field."""
    with pytest.raises(UsageError, match="a message's name is a str, not"):
        messages.find(key)
    if key != 5:
        with pytest.raises(UsageError, match="an API key is an int, not"):
            messages.request_class(key)
