"""A client meets an error: what it does, as its program and the proxy see it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kraftwire.errors import UsageError
from kraftwire.faults.refusing import TEXT
from kraftwire.faults.selectors import api_keys
from kraftwire.messages import API_NAMES, API_VERSIONS
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.testing import ThreadedProxy
from tests.compat.errors.calls import Scene
from tests.compat.errors.program import Crash, Program
from tests.compat.errors.refusals import REFUSALS

# A retriable error passes after so many refusals.
_TIMES = 2
# How clients say that they have given up.
_TIMEOUTS = {"REQUEST_TIMED_OUT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_MSG_TIMED_OUT"}
_TIMEOUTS |= {"KafkaTimeoutError", "TimeoutException", "TimeoutError"}
# Newer transactions do without these APIs: the feature is hidden while they are tested.
_OF_FIRST_TRANSACTIONS = {"AddPartitionsToTxn", "AddOffsetsToTxn"}
_TRANSACTIONS = "transaction.version"
# Brokers offer older versions so that an old librdkafka starts, and do not serve them.
_SERVED_FROM = {"Produce": 3}

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Met:
    """What a client made of an error in one version of an API."""

    api: str
    error: str
    version: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Meeting:
    """A client's program behind a proxy, and a topic that it works on."""

    proxy: ThreadedProxy
    program: Program
    topic: str

    def outcomes(self, api: str) -> Iterator[Met]:
        """Yield what the client makes of both errors, in each version that it can be brought to."""
        (key,) = api_keys(api, API_VERSIONS)
        low, high = API_VERSIONS[key]
        for version in range(max(low, _SERVED_FROM.get(api, low)), high + 1):
            for error in REFUSALS[api]:
                outcome = self._outcome(api, version, error)
                if outcome is None:
                    break
                yield Met(api, error, version, outcome)

    def _outcome(self, api: str, version: int, error: str) -> str | None:
        """Return what the client makes of an error; None if it does not send the version."""
        is_retriable = error == REFUSALS[api].retriable
        limits: dict[str, Any] = {"times": _TIMES} if is_retriable else {}
        if api == "Metadata":  # clients ask for brokers alone, too
            limits["topic"] = self.topic
        with self.proxy.falsify("ApiVersions", partial(_offer_only, api, version)):
            try:
                refusing = self.proxy.refuse(api, error, versions=version, **limits)
            except UsageError:  # the version has no place for the error
                return None
            with refusing, self.proxy.observe(api) as seen:
                answer = self._call(api)
        if not refusing.count:
            return None
        is_sent_again = is_retriable and seen.count > refusing.count
        return _named(answer, error, refusing.count + 1 if is_sent_again else 0)

    def _call(self, api: str) -> Mapping[str, Any] | None:
        name = f"errors-{os.getpid()}-{next(_numbers)}"
        try:
            return self.program.call(api, Scene(self.proxy.bootstrap_servers, self.topic, name))
        except Crash:
            return {"has_crashed": True}


def _named(answer: Mapping[str, Any] | None, error: str, tries: int) -> str:
    """Return a name for what a client did; `tries` of a request that passed in the end, or 0."""
    if answer is None:
        return "does not return"
    if "has_crashed" in answer:
        return "the process crashed"
    seen = answer["error"]
    if seen in (error, TEXT):
        return "in the result" if answer.get("is_in_result") else "raised"
    if tries:
        return f"tried {tries} times"
    if seen is None:
        return "swallowed"
    return "tried until the timeout" if seen in _TIMEOUTS else f"raised as {seen}"


def _offer_only(api: str, version: int, response: ApiVersionsResponse) -> None:
    """Offer one version of an API, if the broker has it."""
    for offered in response.api_keys:
        is_tested = API_NAMES.get(offered.api_key) == api
        if is_tested and offered.min_version <= version <= offered.max_version:
            offered.min_version = offered.max_version = version
    if api in _OF_FIRST_TRANSACTIONS:
        response.finalized_features = [
            each for each in response.finalized_features if each.name != _TRANSACTIONS
        ]
