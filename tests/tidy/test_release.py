"""The current release of Kafka is named in one place, so that the next one is one edit."""

from __future__ import annotations

import json
import re

from kraftwire.testing.cluster.kafka import KAFKA
from tests.tidy.sources import ROOT, project_files

PLACE = "kraftwire/testing/cluster/kafka.py"
# What says what was read, recorded, measured or changed with a release stays true after the next.
RECORDS = (
    "CHANGELOG.md",
    "docs/controller-rules.md",
    "docs/rules.md",
    "docs/security-rules.md",
    "docs/security.md",
    "schemas/SOURCE.json",
    "tests/golden/",
    "tests/interop/clients/README.md",
)


def test_the_current_release_is_named_in_one_place() -> None:
    """Everything else means it without its number."""
    number = re.compile(rb"(?<![\w.])" + re.escape(KAFKA.version.encode()) + rb"(?![\w.])")
    names = (path.relative_to(ROOT).as_posix() for path in project_files())
    others = (name for name in names if not name.startswith(RECORDS))
    assert [name for name in others if number.search((ROOT / name).read_bytes())] == [PLACE]


def test_the_schemas_are_those_of_the_current_release() -> None:
    """Messages of one release and tests against another would prove nothing."""
    source = json.loads((ROOT / "schemas" / "SOURCE.json").read_text("utf-8"))
    assert source["releases"][0]["release"] == KAFKA.version
