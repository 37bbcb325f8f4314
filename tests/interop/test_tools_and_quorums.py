"""Both tools on quorums with nodes of ours: the same voters, words and exit codes.

Quorums of Java controllers alone are in `test_quorum_cli.py`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until
from tests.support.kafka.quorum_tools import masked, ours, reason, theirs

Result = subprocess.CompletedProcess[str]
Tool = Callable[..., Result]

# The last one is the controller that comes and goes.
QUORUMS = {
    "mixed": {1: JAVA, 2: OURS, 3: OURS, 4: JAVA},
    "kraftwire": {1: OURS, 2: OURS, 3: OURS, 4: OURS},
}
# What passes with time: the leader has changed, or the new voter has not caught up yet.
AGAIN = re.compile(r"TimeoutException|REQUEST_TIMED_OUT|NotLeaderOrFollower|NotController")


@pytest.fixture(scope="module", params=QUORUMS)
def quorum(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MixedQuorum]:
    """Three voters that run, and a controller that has been fetching from them."""
    folder = tmp_path_factory.mktemp("quorum")
    kinds = QUORUMS[request.param]
    with MixedQuorum(folder, kinds, is_dynamic=True, observers=[4]) as running:
        running.start()
        running.wait_commit(0)
        yield running


@pytest.fixture(params=[ours, theirs], ids=["kraftwire's tool", "Kafka's tool"])
def tool(request: pytest.FixtureRequest) -> Tool:
    """Each of the two tools."""
    chosen: Tool = request.param
    return chosen


def run(tool: Tool, quorum: MixedQuorum, *words: str) -> Result:
    """Run a tool until it succeeds, or fails for a reason that does not pass with time."""
    front = ["--bootstrap-controller", quorum.bootstrap_controllers]

    def once() -> Result | None:
        result = tool(*front, *words)
        return None if result.returncode and AGAIN.search(result.stderr) else result

    return wait_until(once, " ".join(words), quorum.last_lines)


def config(quorum: MixedQuorum) -> list[str]:
    """What add-controller reads of the fourth controller."""
    return ["--command-config", str(quorum.members[4].config)]


def key(quorum: MixedQuorum) -> list[str]:
    """How remove-controller names it."""
    member = quorum.members[4]
    return ["--controller-id", "4", "--controller-directory-id", member.directory_id]


def test_a_controller_is_added_and_removed(quorum: MixedQuorum, tool: Tool) -> None:
    """Scripts read the same output, and the effect is the same."""
    member = quorum.members[4]
    where = (
        f"controller 4 with directory id {member.directory_id} "
        f"and endpoints: CONTROLLER://127.0.0.1:{member.port}\n"
    )
    dry = run(tool, quorum, *config(quorum), "add-controller", "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, f"DRY RUN of adding {where}")
    assert quorum.voters() == [1, 2, 3]
    added = run(tool, quorum, *config(quorum), "add-controller")
    assert (added.returncode, added.stdout) == (0, f"Added {where}"), added.stderr
    assert quorum.voters() == [1, 2, 3, 4]
    shown = run(tool, quorum, "describe", "--status")
    assert f'{{"id": 4, "directoryId": "{member.directory_id}", "endpoints": ' in shown.stdout
    text = f"KRaft controller 4 with directory id {member.directory_id}\n"
    unregistered = "KRaft controller 4\n"
    remove = ["remove-controller", *key(quorum), "--unregister"]
    dry = run(tool, quorum, *remove, "--dry-run")
    shown = f"DRY RUN of removing {text}DRY RUN of unregistering {unregistered}"
    assert (dry.returncode, dry.stdout) == (0, shown)
    assert quorum.voters() == [1, 2, 3, 4]
    removed = run(tool, quorum, *remove)
    shown = f"Removed {text}Unregistered {unregistered}"
    assert (removed.returncode, removed.stdout) == (0, shown), removed.stderr
    assert quorum.voters() == [1, 2, 3]
    quorum.check_logs_agree()


def test_a_refusal_reads_the_same_with_both_tools(quorum: MixedQuorum) -> None:
    """The text comes from the leader; the tools put their own name in front."""
    leader = quorum.members[quorum.leader()]
    for words in (
        ["--command-config", str(leader.config), "add-controller"],
        ["remove-controller", *key(quorum)],
        ["remove-controller", *key(quorum), "--unregister"],
        ["remove-controller", "-i", "1", "-d", "A" * 22],
    ):
        found, expected = run(ours, quorum, *words), run(theirs, quorum, *words)
        assert (found.returncode, found.stdout) == (expected.returncode, expected.stdout) == (1, "")
        assert reason(found) == reason(expected) != ""
        assert len(found.stderr.splitlines()) == 1


def test_both_tools_describe_the_same(quorum: MixedQuorum) -> None:
    """With any leader, in every column that does not change from moment to moment."""
    for view in ("--status", "--replication"):
        found = _steady(run(ours, quorum, "describe", view).stdout)
        assert found == _steady(run(theirs, quorum, "describe", view).stdout) != ""


def _steady(output: str) -> str:
    """An output without offsets, which grow all the time."""
    output = re.sub(r"((HighWatermark|MaxFollowerLag): +)\d+", r"\1<offset>", masked(output))
    return re.sub(r"(?m)^(\d+ +\t\S{22}\t)\d+ +\t\d+ +\t", r"\1<offset>\t<lag>\t", output)
