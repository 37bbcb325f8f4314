"""What CI installs is pinned, and a check that could not be made says so."""

from __future__ import annotations

import json
import re
import socket
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tools.supply.__main__ import (
    FOUND,
    NONE_KNOWN,
    NOT_CHECKED,
    find_vulnerabilities,
    verdict,
)

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).resolve().parents[3]
_PINNED = {
    ".ci/requirements.txt": ("codegen", "dev", "interop"),
    ".ci/requirements-spark.txt": ("report", "spark"),
}


def _name(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None, requirement
    return re.sub(r"[-_.]+", "-", match[0].lower())


@pytest.mark.parametrize("path", _PINNED)
def test_everything_is_pinned_by_version_and_hash(path: str) -> None:
    """No index is named: the installer decides which one to use."""
    text = (_ROOT / path).read_text()
    requirements = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", text, flags=re.M)).splitlines()
    assert len(requirements) > 10
    for line in requirements:
        assert re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line
    assert "://" not in text


@pytest.mark.parametrize("path", _PINNED)
def test_all_that_the_extras_need_is_pinned(path: str) -> None:
    """A new dependency has to come with `make pins`, or CI does not have it."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    wanted = list(project["dependencies"])
    for extra in _PINNED[path]:
        wanted += project["optional-dependencies"][extra]
    pinned = {_name(line) for line in (_ROOT / path).read_text().splitlines() if "==" in line}
    assert {_name(one) for one in wanted} - {"kraftwire"} <= pinned


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (0, "No known vulnerabilities found\n", NONE_KNOWN),
        (1, "Found 2 known vulnerabilities in 1 package\n", FOUND),
        (1, "ERROR:pip_audit._cli:trio: Dependency not found on PyPI\n", NOT_CHECKED),
        (1, "", NOT_CHECKED),
    ],
)
def test_what_was_not_checked_is_not_reported_as_sound(code: int, said: str, expected: int) -> None:
    """An index without the service lets pip-audit skip every package."""
    assert verdict(code, said)[0] == expected


@pytest.mark.parametrize(
    ("answers", "expected", "asked"),
    [
        ({"pypi": "sound"}, NONE_KNOWN, ["pypi"]),
        ({"pypi": "known"}, FOUND, ["pypi"]),
        ({"pypi": "broken", "osv": "sound"}, NONE_KNOWN, ["pypi", "osv"]),
        ({"pypi": "broken", "osv": "known"}, FOUND, ["pypi", "osv"]),
        ({"pypi": "broken", "osv": "broken"}, NOT_CHECKED, ["pypi", "osv"]),
    ],
)
def test_the_second_service_is_asked_where_the_first_has_no_answer(
    answers: dict[str, str], expected: int, asked: list[str], tmp_path: Path
) -> None:
    """Only then; what no service knows is not reported as sound."""
    program = tmp_path / "pip-audit"
    program.write_text(_PROGRAM.format(folder=tmp_path, answers=answers))
    program.chmod(0o755)
    pinned = tmp_path / "requirements.txt"
    assert find_vulnerabilities([pinned], tools=tmp_path) == expected
    assert (tmp_path / "asked").read_text().split() == asked


_PROGRAM = """#!/usr/bin/env python3
import sys
service = sys.argv[sys.argv.index("--vulnerability-service") + 1]
open("{folder}/asked", "a").write(service + "\\n")
answer = {answers}[service]
if answer == "sound":
    print("No known vulnerabilities found", file=sys.stderr)
elif answer == "known":
    print("Found 1 known vulnerability in 1 package", file=sys.stderr)
else:
    print("ERROR: no answer", file=sys.stderr)
raise SystemExit(answer != "sound")
"""


@contextmanager
def _service(known: dict[str, Any]) -> Iterator[str]:
    """The address of an OSV service that knows these vulnerabilities by package."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(known.get(asked["package"]["name"], {})).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query"
        finally:
            server.shutdown()
            thread.join()


_KNOWN = {
    "trio": {
        "vulns": [
            {
                "id": "TEST-2026-1",
                "summary": "made up",
                "modified": "2026-01-01T00:00:00Z",
                "affected": [
                    {
                        "package": {"name": "trio", "ecosystem": "PyPI"},
                        "versions": ["0.1.0"],
                        "ranges": [
                            {
                                "type": "ECOSYSTEM",
                                "events": [{"introduced": "0"}, {"fixed": "0.2.0"}],
                            }
                        ],
                    }
                ],
            }
        ]
    }
}


@pytest.mark.parametrize(("known", "expected"), [({}, NONE_KNOWN), (_KNOWN, FOUND)])
def test_a_service_that_answers_is_believed(
    known: dict[str, Any], expected: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """pip-audit itself, and a service on loopback."""
    pinned = _pinned(tmp_path)
    with _service(known) as url:
        assert find_vulnerabilities([pinned], url, tools=_tools()) == expected
    assert ("TEST-2026-1" in capsys.readouterr().out) is bool(known)


def test_an_unreachable_service_means_that_nothing_was_checked(tmp_path: Path) -> None:
    """The scheduled check then fails, and does not pass silently."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1/query"
    code = find_vulnerabilities([_pinned(tmp_path)], url, tools=_tools())
    assert code == NOT_CHECKED


def _pinned(folder: Path) -> Path:
    path = folder / "requirements.txt"
    path.write_text(f"trio==0.1.0 --hash=sha256:{'0' * 64}\n")
    return path


def _tools() -> Path:
    """Where `make vulnerabilities` keeps its tools."""
    folder = _ROOT / ".cache" / "supply" / "bin"
    if not (folder / "pip-audit").exists():
        pytest.skip("pip-audit comes with `make vulnerabilities`, which has not been run here")
    return folder
