"""The wheel works by itself: nothing of the checkout is needed, nothing of it is inside."""

from __future__ import annotations

import json
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from kraftwire import __version__, engine
from tests.tidy.distributions import Environment, build, built_wheel, environment
from tests.tidy.sources import ROOT

# In the wheel of packages/sim instead.
_SIMULATOR = ("kraftwire/sim/", "kraftwire/cli/sim/")

VOTE = '{"clusterId":null,"topics":[]}'


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel."""
    return built_wheel(tmp_path_factory.mktemp("wheel"), ROOT)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A new environment with the wheel and what that needs."""
    return environment(tmp_path_factory.mktemp("environment"), wheel)


def _can_be_built() -> bool:
    """Whether the checkout's own engine, built by the same hook, is there."""
    return engine.C in engine.available()


def test_the_wheel_contains_only_the_package(wheel: Path) -> None:
    """Folders called tools or tests would collide with those of other projects."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    (metadata,) = tops - {"kraftwire"}
    assert metadata.endswith(".dist-info")
    assert "kraftwire/py.typed" in names
    assert not [name for name in names if name.startswith(_SIMULATOR)]
    assert not [name for name in names if name.endswith((".c", ".h", ".md"))]
    has_engine = any(name.startswith("kraftwire/engine/_core.") for name in names)
    assert has_engine or not _can_be_built()
    is_for_all = wheel.name.endswith("-py3-none-any.whl")
    compiled = [name for name in names if name.endswith((".so", ".pyd"))]
    assert len(compiled) == (0 if is_for_all else 1), "one for this interpreter alone"


def test_the_source_archive_holds_the_whole_gate(tmp_path: Path) -> None:
    """With the archive alone, people can run what the gate runs."""
    build(tmp_path, ROOT, "--sdist")
    (archive_file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive_file) as archive:
        modes = {each.name.partition("/")[2]: each.mode for each in archive.getmembers()}
    assert modes.keys() >= {"Makefile", "LICENSE", "NOTICE", "README.md", "tests/tidy/sources.py"}
    assert "examples/kv/__main__.py" in modes
    in_c = (ROOT / "kraftwire" / "engine").glob("*.[ch]")
    sources = {path.relative_to(ROOT).as_posix() for path in in_c}
    assert modes.keys() >= {"hatch_build.py", *sources}
    assert modes[".ci/run"] & 0o111


def test_the_wheel_brings_the_engine(installed: Environment) -> None:
    """Where it can be built, it is part of the wheel without an option."""
    version = installed.run("kraftwire", "--version")
    assert version.splitlines()[1] == f"engine: {engine.available()[0]}"


def test_the_wheel_is_what_runs(installed: Environment) -> None:
    """Otherwise the tests below would test the checkout."""
    place = installed.run("python", "-c", "import kraftwire; print(kraftwire.__file__)")
    assert Path(place.strip()).is_relative_to(installed.folder)


def test_every_module_of_the_wheel_can_be_imported(installed: Environment) -> None:
    """A module that reads a file of the checkout fails here, as does a forgotten dependency."""
    code = (
        "import importlib, pkgutil, kraftwire\n"
        "for module in pkgutil.walk_packages(kraftwire.__path__, 'kraftwire.'):\n"
        "    if not module.name.startswith(('kraftwire.spark', 'kraftwire.testing')):\n"
        "        importlib.import_module(module.name)\n"
    )
    installed.run("python", "-c", code)


def test_schemas_are_shown_from_the_wheel(installed: Environment) -> None:
    """The facts of the schemas travel inside the generated modules."""
    assert "ReplicaDirectoryId" in installed.run("kraftwire", "schema", "VoteRequest", "2")


def test_messages_are_encoded_and_decoded_from_the_wheel(installed: Environment) -> None:
    """The codec needs nothing but the wheel."""
    request = json.dumps({"name": "VoteRequest", "version": 0, "json": json.loads(VOTE)})
    encoded = json.loads(installed.run("kraftwire", "message", "encode", stdin=request + "\n"))
    assert encoded["hex"] == "000100"
    line = json.dumps(encoded) + "\n"
    decoded = json.loads(installed.run("kraftwire", "message", "decode", stdin=line))
    assert decoded["json"] == json.loads(VOTE)
    assert decoded["rest"] == 0


def test_the_simulator_is_a_wheel_of_its_own(installed: Environment, tmp_path: Path) -> None:
    """Without it one line says how to get it; with it the command is there. Order: the last."""
    missing = subprocess.run(
        [installed.folder / "bin" / "kraftwire", "sim", "run", "--seeds", "0-0"],
        capture_output=True,
        text=True,
    )
    assert missing.returncode == 2
    assert missing.stdout == ""
    (line,) = missing.stderr.splitlines()
    assert line.endswith(f"pip install kraftwire-sim=={__version__}")
    assert "sim " in installed.run("kraftwire", "--help")
    words = {"COMP_WORDS": "kraftwire si", "COMP_CWORD": "1"}
    completion = {"_KRAFTWIRE_COMPLETE": "bash_complete", **words}
    assert installed.run("kraftwire", **completion).split() == ["plain,sim"]
    further = completion | {"COMP_WORDS": "kraftwire sim ru", "COMP_CWORD": "2"}
    assert "run" not in installed.run("kraftwire", **further)
    wheel = built_wheel(tmp_path, ROOT / "packages" / "sim")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    inside = [name for name in names if ".dist-info/" not in name]
    assert {name for name in inside if not name.startswith(_SIMULATOR)} == set()
    sources = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("kraftwire/**/sim/**/*.py")}
    sources |= {path.relative_to(ROOT).as_posix() for path in ROOT.glob("kraftwire/sim/**/*.py")}
    assert {name for name in inside if name.endswith(".py")} == sources
    installed.install(wheel)
    totals = json.loads(installed.run("kraftwire", "sim", "run", "--seeds", "8-8", "--json"))
    assert (totals["clusters"], totals["violations"]) == (1, 0)


def test_the_simulator_has_the_version_of_the_project() -> None:
    """It uses what no other version promises."""
    simulator, project = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        for folder in ("packages/sim", ".")
    )
    assert simulator["version"] == project["version"] == __version__
    assert simulator["dependencies"] == [f"kraftwire=={__version__}"]
