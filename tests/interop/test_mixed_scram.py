"""The secret by which unknown SCRAM names look like known ones, in logs that Java's nodes read.

Controllers of ours write it as a configuration of all brokers, whose key Kafka does not know
(C-ACT-5).
"""

from __future__ import annotations

from pathlib import Path

from kraftwire.controller.image import DECOY_SECRET_CONFIG
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until
from tests.unit.node.test_scram_quorum import PLAIN_AND_SCRAM, PLAIN_CLIENT, USERS, all_shown

JAVA_VOTER, NODES, BROKER = 1, (2, 3), 4
_NEVER = {"kraftwire.leader.handover": "never"}


def test_java_reads_a_log_with_the_secret(tmp_path: Path) -> None:
    """Its controller and its broker follow, start again on that log, and hide the value."""
    with MixedQuorum(
        tmp_path,
        {JAVA_VOTER: JAVA, **dict.fromkeys(NODES, OURS)},
        PLAIN_AND_SCRAM,
        dict.fromkeys(NODES, _NEVER),
        brokers={BROKER: JAVA},
        format_options=USERS,
        client=PLAIN_CLIENT,
    ) as quorum:
        members = quorum.members
        quorum.start(*NODES)
        wait_until(lambda: all(members[n].image().decoy_secret for n in NODES), "the secret")
        secrets = {members[number].image().decoy_secret for number in NODES}
        quorum.start(JAVA_VOTER, BROKER)
        mark = quorum.wait_commit(quorum.status().high_watermark, JAVA_VOTER, *NODES)
        described = run_kafka_tool(
            "org.apache.kafka.tools.ConfigCommand", "--bootstrap-server", quorum.bootstrap_servers,
            "--describe", "--entity-type", "brokers", "--entity-default",
        )  # fmt: skip
        assert f"{DECOY_SECRET_CONFIG}=null sensitive=true" in described.stdout, described
        assert not any(secret in described.stdout for secret in secrets if secret)
        members[JAVA_VOTER].kill()
        quorum.start(JAVA_VOTER)
        quorum.wait_commit(mark, JAVA_VOTER, *NODES)
        shown = {name: all_shown(quorum, name, NODES) for name in ("node", "nobody")}
        assert {len(found) for found in shown.values()} == {1}
        assert {members[number].image().decoy_secret for number in NODES} == secrets
        assert len(secrets) == 1
        assert quorum.check_logs_agree() > 0
        quorum.check_health()
