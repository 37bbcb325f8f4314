"""What `make dist` builds works in an empty environment, with the engine and without a compiler.

Each distribution is installed far from the checkout, together with what its metadata asks for and
with pytest. There a capture is decoded, and a test uses the fixtures.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kraftwire import engine
from kraftwire.testing.cluster.kafka import KAFKA
from tests.support.kafka.maven import directory_of, kafka_classpath
from tests.tidy.distributions import Environment, environment
from tests.tidy.sources import ROOT

pytestmark = pytest.mark.slow

CAPTURE = ROOT / "tests" / "golden" / "captures" / "quorum.pcap.xz"

# What the README shows.
README = (ROOT / "README.md").read_text("utf-8")
(OF_QUORUM,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)

OF_CLUSTER = """
def test_another_controller_leads(kraftwire_cluster):
    assert kraftwire_cluster.bootstrap_servers.count(":") == 2
    former = kraftwire_cluster.controller.leader()
    assert kraftwire_cluster.controller.change_leader() != former
"""


def _build(command: list[str], **variables: str) -> None:
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `make dist` builds; the network is left out, and the list of materials."""
    folder = tmp_path_factory.mktemp("dist")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    recipes = re.findall(r"^\t\$\(BIN\)/python (-m build .*) --outdir dist (\S+)$", makefile, re.M)
    assert len(recipes) == 2
    for options, project in recipes:
        _build([sys.executable, *shlex.split(options), "--outdir", str(folder), project])
    return folder


@pytest.fixture(
    scope="module",
    params=["the wheel", "the source archive", "the source archive without a compiler"],
)
def installed(
    request: pytest.FixtureRequest, dist: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """An environment with one of them."""
    (wheel,) = dist.glob("kraftwire-*.whl")
    if request.param != "the wheel":
        (archive,) = dist.glob("kraftwire-*.tar.gz")
        to = tmp_path_factory.mktemp("built")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
        options = ["--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", str(to)]
        without = {"CC": "false"} if request.param.endswith("without a compiler") else {}
        _build([*pip, *options, str(archive)], **without)
        (wheel,) = to.glob("kraftwire-*.whl")
    made = environment(tmp_path_factory.mktemp("environment"), wheel, "pytest")
    expected = engine.PYTHON if "without" in request.param else engine.available()[0]
    assert f"engine: {expected}" in made.run("kraftwire", "--version").splitlines()
    assert wheel.name.endswith("-none-any.whl") == (expected == engine.PYTHON)
    return made


def test_captures_are_decoded(installed: Environment) -> None:
    """Compressed ones too, with an exit code that says that every byte was understood."""
    options = ["--api", "Vote", "--format", "jsonl"]
    lines = installed.run("kraftwire", "decode", str(CAPTURE), *options).splitlines()
    assert [json.loads(line)["apiName"] for line in lines] == ["Vote"] * 8


def _run_test(installed: Environment, text: str, **variables: str) -> str:
    file = installed.folder / "test_mine.py"
    file.write_text(text, encoding="utf-8")
    return installed.run("python", "-m", "pytest", "-q", "-rs", file.name, **variables)


def test_the_fixture_of_a_quorum_is_there(installed: Environment) -> None:
    """A test needs no import."""
    assert "1 passed" in _run_test(installed, OF_QUORUM)


@pytest.mark.interop
def test_the_fixture_of_a_cluster_is_there(installed: Environment) -> None:
    """With Java, and Kafka's jars from where a user has them."""
    kafka_classpath()
    jars = str(directory_of(KAFKA))
    assert "1 passed" in _run_test(installed, OF_CLUSTER, KRAFTWIRE_KAFKA=jars)


def test_without_java_the_fixture_of_a_cluster_says_so(installed: Environment) -> None:
    """The test is skipped, with the reason."""
    said = _run_test(installed, OF_CLUSTER, PATH=str(installed.folder / "bin"))
    assert "there is no program java on the PATH" in said


def test_the_simulator_is_added(installed: Environment, dist: Path) -> None:
    """It is of the same version, and needs nothing further. Order: the last."""
    (wheel,) = dist.glob("kraftwire_sim-*.whl")
    installed.install(wheel)
    totals = json.loads(installed.run("kraftwire", "sim", "run", "--seeds", "8-8", "--json"))
    assert (totals["clusters"], totals["violations"]) == (1, 0)
