"""Commands in tables of what to type instead of other tools do what the tables say: each is run.

These tables have the head `here`. File names in them stand for files of `tests/golden`, and the
address of a controller for a quorum that the tests start. Commands that run until they are ended
are not run, nor those with something left for the reader to fill in, such as ID.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.testing import Cluster, Quorum, ThreadedProxy, quorum
from kraftwire.testing.cluster.controlled import Controllers
from tests.tidy.recipes import run
from tests.tidy.sources import ROOT, show

PAGES = (ROOT / "README.md", ROOT / "docs" / "coming-from.md")
GOLDEN = ROOT / "tests" / "golden"
FILES = {
    "trace.pcapng": "captures/groups.pcapng.xz",
    "quorum.pcapng": "captures/quorum.pcap.xz",
    "tls.pcap": "captures/tls.pcap.xz",
    "keys.txt": "captures/tls.keylog",
    "data": "logs/broker",
    "data/orders-0": "logs/broker/logappend-0",
    "node-1": "logs/controller",
    "observer": "logs/observer",
    "tiered": "logs/tiered",
}
# What runs until it is ended, or needs Java.
ENDLESS = ("kraftwire node start", "kraftwire cluster up", "kraftwire perf", "kraftwire decode -")
FILLED_IN = re.compile(r"\b(?:ID|DIRECTORY|NODE-\d|CONFIG)\b")
EXPECTED = {"kraftwire diff": {0, 1}, "kraftwire metadata": {0, 1, 3}}
SPAN = re.compile(r"`([^`]+)`")
METHOD = re.compile(r"\b(nodes|cluster|controller|proxy)\.(?=(\w+))")
NODE = """\
process.roles=controller
node.id=1
listeners=CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:9093
log.dirs=formatted
"""


def _cells(page: Path) -> Iterator[tuple[int, str]]:
    """Number of the line, and the last cell, of each row of such a table."""
    is_inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        is_inside = bool(cells) and (is_inside or cells[-1] == "here")
        if is_inside:
            yield number, cells[-1].replace("\\|", "|")


COMMANDS = [
    pytest.param(span, id=f"{show(page, number)} {span}")
    for page in PAGES
    for number, cell in _cells(page)
    for span in SPAN.findall(cell)
    if span.startswith("kraftwire ") and not FILLED_IN.search(span) and not span.startswith(ENDLESS)
]
METHODS = sorted({match for _, cell in _cells(PAGES[1]) for match in METHOD.findall(cell)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the tables name."""
    root = tmp_path_factory.mktemp("tables")
    for name, source in FILES.items():
        if (GOLDEN / source).is_dir():
            shutil.copytree(GOLDEN / source, root / name)
        else:
            shutil.copy(GOLDEN / source, root / name)
    (root / ".venv").symlink_to(sys.prefix)
    (root / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    (root / "server.properties").write_text(NODE)
    shutil.copytree(GOLDEN, root / "tests" / "golden")
    formatted = "kraftwire storage format -t 4L6g3nShT-eMCtK--X86sw -c server.properties -s"
    run(formatted, root)
    return root


@pytest.fixture(scope="module")
def nodes() -> Iterator[Quorum]:
    """The quorum that some commands ask."""
    with quorum(nodes=3) as started:
        started.leader()
        yield started


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_a_table_runs(
    command: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    """Somebody who comes from another tool types it as it stands."""
    typed = command
    if "localhost:9093" in command:
        address = request.getfixturevalue("nodes").bootstrap_controllers
        typed = command.replace("localhost:9093", address)
    words = " ".join(command.split()[:2])
    allowed = "|".join(map(str, sorted(EXPECTED.get(words, {0}))))
    script = f"set +eo pipefail; ({typed}); case $? in ({allowed}) exit 0;; (*) exit 9;; esac"
    assert run(script, folder).strip(), f"{command} prints nothing"


def test_the_tables_are_read() -> None:
    """A table under another head would be left out."""
    assert len(COMMANDS) > 50
    assert len(METHODS) > 8


@pytest.mark.parametrize(("owner", "name"), METHODS)
def test_a_method_of_a_table_exists(owner: str, name: str) -> None:
    """The names of fixtures are those of the page about tests."""
    classes = {
        "nodes": Quorum,
        "cluster": Cluster,
        "controller": Controllers,
        "proxy": ThreadedProxy,
    }
    found = classes[owner]
    assert hasattr(found, name) or name in found.__annotations__ or name == "controller"
