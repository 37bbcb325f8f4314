"""`--command-config` of the commands: what cannot be used ends them before any connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.cli.main import main

COMMANDS = {
    "quorum describe": ["quorum", "describe", "--status"],
    "quorum watch": ["quorum", "watch"],
    "quorum remove-controller": ["quorum", "remove-controller", "-i", "1"],
    "pipeline tail": ["pipeline", "tail", "--out", "never-made"],
    "metadata show": ["metadata", "show"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["client.id=x", "ssl.truststore.location=x"], "2: ssl.truststore.location: security.prot"),
        (["security.protocol=SSL", "ssl.truststore.location=x"], "2: ssl.truststore.location: x: "),
        (["security.protocol=SSL", r"ssl.truststore.location=\u0000"], "2: ssl.truststore."),
        (["security.protocol=SASL_SSL", "sasl.mechanism=X"], "2: sasl.mechanism: X is not supp"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_place(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: list[str],
    lines: list[str],
    problem: str,
) -> None:
    """By every command that connects, with 2, in one line."""
    path = tmp_path / "c.properties"
    path.write_text("\n".join(lines) + "\n")
    through = ["--bootstrap-controller", "127.0.0.1:1", "--command-config", str(path)]
    assert main([*command, *through]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"kraftwire: {path}:{problem}")
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["pipeline tail", "metadata show"])
def test_a_file_that_is_not_there_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    """With the option; `kraftwire quorum` says it as Kafka's tool does."""
    path = str(tmp_path / "missing")
    through = ["--bootstrap-controller", "127.0.0.1:1", "--command-config", path]
    assert main([*COMMANDS[command], *through]) == 2
    problem = f"kraftwire: --command-config {path}: No such file or directory\n"
    assert capsys.readouterr().err == problem
