"""Other people's clients on real brokers with our controllers: `make interop-brokers`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.clients.brokers import STEPS, brokers_on, differences, use
from tests.interop.clients.matrix import CLIENTS, Client, Outcome, Step
from tests.support.kafka.maven import unavailable
from tests.support.kafka.mixed_quorum import kind_under_test


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two brokers on three controllers, which all clients use one after the other."""
    with brokers_on(kind_under_test(), tmp_path_factory.mktemp("brokers")) as found:
        yield found


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_does_everything_that_it_has_a_call_for(client: Client, servers: str) -> None:
    """From the cluster's id to the deletion of its topic; its program leaves out the rest."""
    if missing := client.missing():
        reason = f"{client.name} needs {missing}"
        unavailable(reason) if client.is_required else pytest.skip(reason)
    outcome = use(client, servers)
    failed = {name: step.detail for name, step in outcome.steps.items() if not step.is_ok}
    assert not failed
    assert {"cluster", "topics", "produce", "classic"} <= outcome.steps.keys() <= set(STEPS)


def test_what_works_with_kafkas_controllers_has_to_be_the_same_with_ours() -> None:
    """A step that fails, is missing or reports anything else; not one that fails with both."""
    theirs = Outcome("1", {step: Step(True, "2") for step in ("cluster", "quorum", "topics")})
    theirs.steps["delete"] = Step(False, "refused")
    ours = Outcome("1", {"cluster": Step(True, "2"), "quorum": Step(False, "late")})
    assert differences(theirs, theirs) == []
    assert differences(ours, theirs) == [
        "quorum: late; on Kafka's controllers: 2",
        "topics: not reported; on Kafka's controllers: 2",
    ]
    ours.steps |= {"quorum": Step(True, "2"), "topics": Step(True, "3")}
    assert differences(ours, theirs) == ["topics: 3; on Kafka's controllers: 2"]
