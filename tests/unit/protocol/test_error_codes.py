"""The table of error codes."""

from __future__ import annotations

import copy
import pickle

import pytest

from kraftwire.errors import ApiError, UsageError
from kraftwire.protocol.error_codes import ErrorCode, error_name


def test_the_codes_are_those_of_kafka_without_a_gap() -> None:
    """A missing number would be one that a peer sends and we cannot name."""
    codes = [int(code) for code in ErrorCode]
    assert codes == list(range(-1, max(codes) + 1))


def test_every_code_has_its_own_name_and_a_short_text() -> None:
    """Names go into logs and JSON; texts stand after them on one line."""
    names = [code.name for code in ErrorCode]
    assert len(names) == len({*names})
    assert all(0 < len(code.about) <= 60 for code in ErrorCode)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (-1, "UNKNOWN_SERVER_ERROR"),
        (0, "NONE"),
        (6, "NOT_LEADER_OR_FOLLOWER"),
        (35, "UNSUPPORTED_VERSION"),
        (42, "INVALID_REQUEST"),
        (74, "FENCED_LEADER_EPOCH"),
        (98, "SNAPSHOT_NOT_FOUND"),
        (104, "INCONSISTENT_CLUSTER_ID"),
        (127, "VOTER_NOT_FOUND"),
        (133, "SHARE_SESSION_LIMIT_REACHED"),
        (136, "CONTROLLER_ID_NOT_REGISTERED"),
    ],
)
def test_codes_have_kafkas_names(code: int, name: str) -> None:
    """Spot checks across the table: one shifted row would rename all that follow."""
    assert ErrorCode(code).name == name
    assert getattr(ErrorCode, name) == code
    assert error_name(code) == name


def test_retriable_codes_are_kafkas_retriable_exceptions() -> None:
    """A client that retries others would repeat a mistake for ever."""
    retriable = [int(code) for code in ErrorCode if code.is_retriable]
    assert retriable == [
        2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84,
        88, 89, 100, 103, 106, 122, 123, 133,
    ]  # fmt: skip


def test_an_unknown_code_still_has_a_name() -> None:
    """A newer peer may send codes that we do not have; printing its answer must not fail."""
    assert error_name(999) == "UNKNOWN(999)"


def test_an_unknown_code_is_not_a_member() -> None:
    """A lookup gives a member or an error, never a nameless number."""
    with pytest.raises(UsageError, match=r"error code 999: expected -1 to \d{3}"):
        ErrorCode(999)


def test_a_code_is_a_number_that_knows_its_name() -> None:
    """Messages carry plain integers, so members have to compare and print as such."""
    assert ErrorCode.NOT_CONTROLLER == 41
    assert f"{ErrorCode.NOT_CONTROLLER}" == "41"
    assert repr(ErrorCode.NOT_CONTROLLER) == "<ErrorCode.NOT_CONTROLLER: 41>"
    assert str(ApiError(ErrorCode.NOT_CONTROLLER, "ask node 2")) == "error 41: ask node 2"


def test_there_is_one_object_per_code() -> None:
    """`is` and match statements work, also after copying and pickling."""
    code = ErrorCode.DUPLICATE_VOTER
    assert ErrorCode(126) is code
    assert copy.deepcopy(code) is code
    assert pickle.loads(pickle.dumps(code)) is code
