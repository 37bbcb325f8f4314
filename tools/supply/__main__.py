"""Run ``python -m tools.supply pins|sbom|vulnerabilities|notes``; as the Makefile and releases do.

It runs in an environment with uv, cyclonedx-bom and pip-audit, and imports nothing of the project;
`notes` needs Python alone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINNED = ROOT / ".ci" / "requirements.txt"
PINNED_SPARK = ROOT / ".ci" / "requirements-spark.txt"

# The oldest supported versions of Python get separate pins where newer ones differ.
PYTHON_MIN = "3.11"

_TOOLS = Path(sys.executable).parent
_HEAD = "# Made by `make pins`: versions and hashes of all that CI installs.\n"

NONE_KNOWN, FOUND, NOT_CHECKED = range(3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one of the commands; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.supply", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    commands.add_parser("pins", help="resolve and write the pinned versions")
    sbom = commands.add_parser("sbom", help="write a bill of materials (CycloneDX, JSON)")
    sbom.add_argument("--output", type=Path, required=True)
    known = commands.add_parser("vulnerabilities", help="check the pinned versions")
    known.add_argument("--osv-url", metavar="URL", help="ask only this OSV service")
    notes = commands.add_parser("notes", help="print the changelog of a release")
    notes.add_argument("tag", help="what the release is tagged with: v and its version")
    options = parser.parse_args(arguments)
    if options.command == "notes":
        print(release_notes(ROOT, options.tag))
        return 0
    if options.command == "pins":
        return write_pins()
    if options.command == "sbom":
        return write_sbom(options.output)
    return find_vulnerabilities((PINNED, PINNED_SPARK), options.osv_url)


def write_pins() -> int:
    """Resolve everything again: first what all of CI needs, then Spark's extra on top of it."""
    code = _compile(PINNED, ["codegen", "dev", "interop"], ["--upgrade"])
    return code or _compile(PINNED_SPARK, ["spark"], ["--upgrade", "--constraint", str(PINNED)])


def write_sbom(output: Path) -> int:
    """List what an installation without extras depends on, at the pinned versions."""
    with tempfile.TemporaryDirectory() as folder:
        runtime = Path(folder) / "runtime.txt"
        code = _compile(runtime, [], ["--constraint", str(PINNED)])
        if code:
            return code
        project = ["--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"]
        to = ["--output-format", "JSON", "--output-file", str(output)]
        return _run("cyclonedx-py", "requirements", *project, *to, str(runtime))


def release_notes(root: Path, tag: str) -> str:
    """Return the section of the changelog for a release.

    Raises: SystemExit if the tag is not that of the version in both projects, or nothing is said
    about it.
    """
    for folder in (root, root / "packages" / "sim"):
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        if tag != f"v{project['version']}":
            name, version = project["name"], project["version"]
            raise SystemExit(f"the tag is {tag}, but {name} has version {version}")
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.compile(rf"^## \[?{re.escape(tag[1:])}\]?( .*)?\n", re.MULTILINE)
    found = heading.search(text)
    section = re.split(r"^## ", text[found.end() :], maxsplit=1, flags=re.M)[0] if found else ""
    if not section.strip():
        raise SystemExit(f"CHANGELOG.md says nothing under '## {tag[1:]}'")
    return section.strip()


def find_vulnerabilities(
    paths: Sequence[Path], osv_url: str | None = None, *, tools: Path = _TOOLS
) -> int:
    """Return 0 if none is known, 1 with a list of them, 2 if not everything could be checked.

    The package index is queried first, then OSV for packages that the index does not know. `tools`
    holds pip-audit.
    """
    services = [["pypi"], ["osv"]] if osv_url is None else [["osv", "--osv-url", osv_url]]
    return max(_ask(path, services, tools) for path in paths)


def _ask(path: Path, services: Sequence[Sequence[str]], tools: Path) -> int:
    """Return the verdict of the first service that knows all packages of a file."""
    command = [str(tools / "pip-audit"), "--disable-pip", "--require-hashes", "--strict"]
    command += ["--requirement", str(path), "--vulnerability-service"]
    code = NOT_CHECKED
    for service in services:
        done = subprocess.run([*command, *service], text=True, capture_output=True, check=False)
        code, said = verdict(done.returncode, done.stderr)
        print(f"{path.name}, {service[0]}: {said}")
        if code != NOT_CHECKED:
            print(done.stdout if code == FOUND else "", end="")
            break
    return code


def verdict(code: int, said: str) -> tuple[int, str]:
    """Interpret pip-audit's exit code and last line.

    It returns 1 both for findings and for errors; and without `--strict` it reports packages that
    its service does not know as sound.
    """
    last = (said.strip().splitlines() or ["no reason given"])[-1]
    if code == NONE_KNOWN:
        return NONE_KNOWN, last
    if code == FOUND and last.startswith("Found "):
        return FOUND, last
    return NOT_CHECKED, f"NOT CHECKED, the service could not be asked: {last}"


def _compile(path: Path, extras: Sequence[str], more: Sequence[str]) -> int:
    """Pin what pyproject.toml requires. The file names no index."""
    flags = ["--quiet", "--universal", "--python-version", PYTHON_MIN, "--generate-hashes"]
    flags += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    flags += [flag for extra in extras for flag in ("--extra", extra)]
    source = str(ROOT / "pyproject.toml")
    # Constraints with hashes are read as well as those without.
    code = _run("uv", "pip", "compile", *flags, *more, "--output-file", str(path), source)
    if not code:
        path.write_text(_HEAD + path.read_text(encoding="utf-8"), encoding="utf-8")
    return code


def _run(program: str, *arguments: str) -> int:
    command = [str(_TOOLS / program), *arguments]
    return subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
