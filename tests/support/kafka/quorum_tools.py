"""`kraftwire quorum` and kafka-metadata-quorum, run to their ends, and their output compared."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile

from kraftwire.cli import main as cli
from tests.support.kafka.java import JavaTools, shared_tools


def ours(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run our command, in this process."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
    ):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main(["quorum", *arguments])
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def theirs(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Kafka's tool, which accepts connection options only in front."""
    return shared_tools().run("quorum", *arguments)


def reason(result: subprocess.CompletedProcess[str]) -> str:
    """Why a run failed: one line, without the class of an exception or the name of an error."""
    first = result.stderr.splitlines()[0]
    return re.sub(r"^[\w.]+Exception: |^kraftwire( quorum)?: (error -?\d+: [A-Z_]+: )?", "", first)


def masked(output: str) -> str:
    """An output with times replaced, so that two runs can be compared."""
    output = re.sub(r"\b\d{13}\b", "<timestamp>", output)
    output = re.sub(r"\d+ ms ago *", "<ms ago>", output)
    return re.sub(r"(MaxFollowerLagTimeMs: +)\d+", r"\1<ms>", output)


def check_same_status(tools: JavaTools, address: str, properties: str) -> None:
    """Both tools reach a controller with one client's file, and show the same fields."""
    words = ("--bootstrap-controller", address, "--command-config", properties)
    described = ours(*words, "describe", "--status")
    assert (described.returncode, described.stderr) == (0, "")
    expected = tools.run("quorum", *words, "describe", "--status")
    assert expected.returncode == 0, expected.stderr
    fields = [line.split(":")[0] for line in masked(described.stdout).splitlines()]
    assert fields == [line.split(":")[0] for line in masked(expected.stdout).splitlines()]
