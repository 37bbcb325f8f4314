"""The facts in schemas/ are those in the jars of the releases, error codes those of Kafka."""

from __future__ import annotations

import re
from pathlib import Path

from kraftwire.protocol.error_codes import ErrorCode
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.maven import KAFKA, OLD_CLIENTS, OLDER, kafka_classpath
from tools.import_schemas.__main__ import import_releases
from tools.import_schemas.jars import Release, read_releases
from tools.import_schemas.tree import changed_files, read_source, read_tree

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
_SOURCE = read_source(SCHEMAS)
MODULES = (
    "clients",
    "group-coordinator",
    "metadata",
    "raft",
    "share-coordinator",
    "storage",
    "transaction-coordinator",
)


def _releases() -> list[Release]:
    """Those of SOURCE.json in full, but of the oldest the clients, which have all requests."""
    jars = []
    full = ((release, MODULES) for release in (KAFKA, *OLDER) if release.version in _SOURCE[:-1])
    for release, modules in (*full, (OLD_CLIENTS, ("clients",))):
        folder = Path(kafka_classpath(release)).parent
        jars += [folder / f"kafka-{module}-{release.version}.jar" for module in modules]
    return read_releases(jars)


def test_importing_the_releases_again_changes_no_schema() -> None:
    """A fact edited by hand would make us read bytes as Kafka does not."""
    files, lost = import_releases(_releases(), read_tree(SCHEMAS))
    # SOURCE.json also lists the older release's other jars, which the test does without.
    assert [path for path in changed_files(SCHEMAS, files) if path != "SOURCE.json"] == []
    assert lost == []


def test_the_source_names_the_releases_that_are_tested_against() -> None:
    """Schemas of one release and tests against another would prove nothing."""
    assert (_SOURCE[0], _SOURCE[-1]) == (KAFKA.version, OLD_CLIENTS.version)
    assert {*_SOURCE} <= {release.version for release in (KAFKA, *OLDER)}


def test_error_codes_are_those_of_the_current_release() -> None:
    """No schema has them: number, name, and whether a retry can help."""
    page = run_kafka_tool("org.apache.kafka.common.protocol.Errors").stdout
    cells = re.findall(r"<td>(.*?)</td>", page)
    theirs = [
        (int(code), name, can_retry == "True")
        for name, code, can_retry, _ in zip(*[iter(cells)] * 4, strict=True)
    ]
    assert theirs == [(int(code), code.name, code.is_retriable) for code in ErrorCode]
