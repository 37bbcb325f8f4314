"""`kraftwire proxy`: wrong usage, and files that cannot be used, end it before it listens."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kraftwire.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "Missing option '--upstream'"),
        (["--upstream", "a"], "--upstream: expected host:port, found 'a'"),
        (["--upstream", "a:1", "--listen", "b"], "--listen: expected host:port, found 'b'"),
        (["--upstream", "a:1", "--listen", "0.0.0.0:0"], "clients need --advertised-host"),
        (["--upstream", "a:1", "--listen", "[::]:0"], "clients need --advertised-host"),
        (["--upstream", "a:1", "--control", "b"], "--control: expected host:port, found 'b'"),
        (["--upstream", "a:1", "--control", "192.0.2.1:0"], "it needs --control-token-file"),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    """With exit code 2."""
    assert main(["proxy", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line


def test_a_bad_file_of_rules_is_one_line_with_its_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With exit code 1, before anything is connected to."""
    path = tmp_path / "rules.toml"
    path.write_text('[[rules]]\napi = "Produce"\nrefuse = "NO_SUCH_ERROR"\n')
    assert main(["proxy", "--upstream", "a:1", "--rules", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path}:3: refuse: there is no error 'NO_SUCH_ERROR'" in line


@pytest.mark.parametrize("option", ["--listen", "--control"])
def test_a_port_that_is_taken_is_one_line(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """With exit code 1."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["proxy", "--upstream", "127.0.0.1:1", option, address]) == 1
    assert capsys.readouterr().err == f"kraftwire: {address}: Address already in use\n"


def test_a_token_that_is_none_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A file that is not there is exit code 1, as everywhere; one without a token is usage."""
    path = tmp_path / "token"
    words = ["proxy", "--upstream", "a:1", "--control", "[::1]:0", "--control-token-file"]
    assert main([*words, str(path)]) == 1
    path.write_text("short\n")
    assert main([*words, str(path)]) == 2
    missing, short = capsys.readouterr().err.splitlines()
    assert missing == f"kraftwire: {path}: No such file or directory"
    assert f"{path}: expected a token: 16 characters" in short


def test_a_cluster_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """With exit code 1."""
    assert main(["proxy", "--upstream", "127.0.0.1:1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "127.0.0.1:1: Connection refused" in line
