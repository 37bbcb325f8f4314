"""A folder of tables belongs to one run at a time, and to runs alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.errors import UsageError
from kraftwire.spark.run import LocalRunner, RunOptions, run
from kraftwire.spark.run.manifest import claimed
from tests.spark.run.folders import captures

_HOLDER = """
import sys
from pathlib import Path
from kraftwire.spark.run.manifest import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def _run(source: Path, out: Path) -> None:
    run([str(source)], RunOptions(out), LocalRunner(), warn=print, resume=True)


def test_two_runs_in_one_folder(tmp_path: Path) -> None:
    """The second would sweep away what the tasks of the first are writing."""
    source, out = captures(tmp_path / "in", "sasl"), tmp_path / "out"
    program = [sys.executable, "-c", _HOLDER, str(out)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match="another run is using"):
            _run(source, out)
        other.kill()
    _run(source, out)
    with claimed(out), pytest.raises(UsageError, match="another run is using"):
        _run(source, out)


def test_what_no_run_wrote_is_not_taken_for_tables(tmp_path: Path) -> None:
    """Nor is it mixed with them: its rows have no input that they came from."""
    source, out = captures(tmp_path / "in", "sasl"), tmp_path / "out"
    (out / "exchanges").mkdir(parents=True)
    (out / "notes.txt").write_text("other things do no harm")
    (out / "exchanges" / "part.parquet").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"holds exchanges/part\.parquet"):
        _run(source, out)
    (out / "exchanges" / "part.parquet").unlink()
    _run(source, out)
    _run(source, out)


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    """The error names the given file, not one that would be in it."""
    out = tmp_path / "out"
    out.write_text("")
    with pytest.raises(UsageError, match="out: is a file"):
        _run(captures(tmp_path / "in", "sasl"), out)
