"""Java programs of the tests: compiled once into the cache, talked to over pipes.

Owns the command line of every JVM that tests start for a moment (`run_kafka_tool`) or for a
session (`JavaPeer`, `JavaTools`, `shared_tools`). Real nodes are in `kafka_process`.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from tests.support.kafka import java_sources
from tests.support.kafka.class_archive import archive_options
from tests.support.kafka.java_sources import (
    SOURCES,
    Places,
    called_place,
    places_of_classes,
    with_moved_imports,
)
from tests.support.kafka.maven import CACHE, KAFKA, Release, exclusive, kafka_classpath

# Short-lived JVMs start twice as fast with the quick compiler and the serial collector, and two of
# them must fit next to a test run.
JVM_OPTIONS = ("-Xmx512m", "-Xss2m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

_TOOL_SECONDS_MAX = 300

# A batch takes seconds. Kafka's keyed collections take hours to read many equal elements, so a
# question can block the JVM.
_BATCH_SECONDS_MAX = 300


def run_kafka_tool(
    main_class: str, *args: object, check: bool = True, release: Release = KAFKA
) -> subprocess.CompletedProcess[str]:
    """Run a main class of Kafka, such as ``kafka.tools.DumpLogSegments``, to its end.

    Those of the newest release run in one JVM, one after the other.

    Raises: AssertionError with the tool's output if it fails and `check` is set; skips or fails
    the test where Java or the jars are missing.
    """
    main_class = called_place(main_class, _places(release))
    if release == KAFKA:
        result = shared_tools().run(main_class, *args)
    else:
        result = _run_alone(release, main_class, *args)
    shown = f"{main_class} {' '.join(map(str, args))}\n{result.stdout}\n{result.stderr}"
    assert not check or result.returncode == 0, f"exit code {result.returncode}: {shown}"
    return result


def _run_alone(
    release: Release, main_class: str, *args: object
) -> subprocess.CompletedProcess[str]:
    options = (*JVM_OPTIONS, *archive_options(release))
    command = ["java", *options, "-cp", kafka_classpath(release), main_class]
    return subprocess.run(
        [*command, *map(str, args)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TOOL_SECONDS_MAX,
        check=False,
    )


def run_java_source(name: str, given: bytes) -> bytes:
    """Run a class of java/single for the current release with this input; returns its output.

    Raises: AssertionError with the program's errors if it fails.
    """
    classpath = f"{kafka_classpath()}:{compiled_classes(folder='single')}"
    command = ["java", *JVM_OPTIONS, "-cp", classpath, name]
    result = subprocess.run(
        command, input=given, capture_output=True, timeout=_TOOL_SECONDS_MAX, check=False
    )
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout


@functools.cache
def compiled_classes(release: Release = KAFKA, folder: str = "") -> Path:
    """The classes of a folder of `java_programs`, or of another, for a release, keyed by digest.

    `folder` is for programs whose classes not every release has.
    """
    sources = sorted((SOURCES / folder).glob("*.java"))
    # The module decides what is compiled of them.
    parts = (path.read_bytes() for path in (Path(java_sources.__file__), *sources))
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]
    target = CACHE / f"classes-{release.version}-{digest}"
    with exclusive(f"classes-{release.version}"):
        if not target.exists():
            _compile(sources, release, target)
    return target


@functools.cache
def _places(release: Release) -> Places:
    return places_of_classes(Path(kafka_classpath(release)).parent.glob("kafka*.jar"))


def _compile(sources: list[Path], release: Release, target: Path) -> None:
    """Compile copies that import what moved from where the release has it; see java_sources."""
    folder = Path(tempfile.mkdtemp(prefix="classes-", dir=CACHE))
    places = _places(release)
    try:
        for source in sources:
            text = with_moved_imports(source.read_text("utf-8"), places)
            (folder / source.name).write_text(text, "utf-8")
        command = ["javac", "-Xlint:all", "-Werror", "-d", str(folder)]
        command += ["-cp", kafka_classpath(release)]
        result = subprocess.run(
            [*command, *(str(folder / source.name) for source in sources)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def java_images(questions: Iterable[list[list[bytes]]]) -> list[list[bytes] | str]:
    """What Kafka's image of metadata records would write into a snapshot; see metadata/Images.java.

    A question is the values of records in batches; an answer is values, or the text with
    which Kafka refuses one of the records.
    """
    lines = [
        json.dumps({"batches": [[value.hex() for value in batch] for batch in question]})
        for question in questions
    ]
    classpath = f"{kafka_classpath(KAFKA)}:{compiled_classes(KAFKA, 'metadata')}"
    result = subprocess.run(
        ["java", *JVM_OPTIONS, "-cp", classpath, "kraftwire.Images"],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=_TOOL_SECONDS_MAX,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(answers) == len(lines), f"{len(answers)} answers to {len(lines)} questions"
    return [
        answer.get("error") or [bytes.fromhex(text) for text in answer["records"]]
        for answer in answers
    ]


class JavaPeer:
    """A program in a separate JVM that answers questions: Kafka's own serializer of one release.

    See java/Peer.java; `folder` and `program` name another one, such as security/Security.java.
    Order: use it as a context manager; the JVM starts on entry and ends on exit.
    """

    def __init__(self, release: Release = KAFKA, folder: str = "", program: str = "Peer") -> None:
        self.release = release
        self._folder = folder
        self._program = program
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> JavaPeer:
        classes = compiled_classes(self.release, self._folder)
        classpath = f"{classes}:{kafka_classpath(self.release)}"
        self._process = subprocess.Popen(
            ["java", *JVM_OPTIONS, "-cp", classpath, f"kraftwire.{self._program}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        return self

    def __exit__(self, *_: object) -> None:
        process = self._running()
        # Closing its input lets the program end by itself.
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait()
        process.stdout.close()

    def ask(self, questions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Answers to a batch of questions, in order.

        Raises: AssertionError with the first question that the JVM did not answer.
        """
        process = self._running()
        assert process.stdout is not None
        lines = [json.dumps(question) for question in questions]
        # The pipes are smaller than a batch: write while reading, or both sides wait forever.
        writer = threading.Thread(target=self._write, args=(lines,))
        deadline = threading.Timer(_BATCH_SECONDS_MAX, process.kill)
        writer.start()
        deadline.start()
        answers = [process.stdout.readline() for _ in lines]
        deadline.cancel()
        writer.join()
        unanswered = [line[:400] for line, answer in zip(lines, answers, strict=True) if not answer]
        assert not unanswered, f"the JVM ended or was stuck and did not answer {unanswered[0]}"
        return [json.loads(answer) for answer in answers]

    def message_versions(self) -> dict[str, range]:
        """Every message of the release and its versions, as its generated classes state them."""
        (answer,) = self.ask([{"op": "list"}])
        return {
            message["name"]: range(message["low"], message["high"] + 1)
            for message in answer["messages"]
        }

    def _write(self, lines: list[str]) -> None:
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.writelines(f"{line}\n" for line in lines)
            process.stdin.flush()
        except BrokenPipeError:
            pass  # `ask` notices the missing answers and reports more than this error would

    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None, "use JavaPeer as a context manager"
        return self._process


class JavaTools:
    """Kafka's command line tools in one JVM, one run after the other; see java/Tools.java.

    Order: use it as a context manager; the JVM starts on entry and ends on exit. Threads may share
    it.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [
                *("java", *JVM_OPTIONS, *archive_options()),
                # An archive is only of use to a class path that begins with its own.
                *("-cp", f"{kafka_classpath()}:{compiled_classes()}", "kraftwire.Tools"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, tool: str, *args: object) -> subprocess.CompletedProcess[str]:
        """Run `storage`, `quorum`, `features`, `acls`, `configs`, `tokens` or a class to its end.

        Raises: AssertionError if the tool ends the JVM, as it does on wrong usage.
        """
        with self._lock:
            return self._run(tool, list(map(str, args)))

    def _run(self, tool: str, words: list[str]) -> subprocess.CompletedProcess[str]:
        assert self._process is not None, "use JavaTools as a context manager"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"tool": tool, "args": words}) + "\n")
        self._process.stdin.flush()
        deadline = threading.Timer(_TOOL_SECONDS_MAX, self._process.kill)
        deadline.start()
        line = self._process.stdout.readline()
        deadline.cancel()
        assert line, f"{tool} {words} ended its JVM or was stuck"
        result = json.loads(line)
        return subprocess.CompletedProcess(words, result["code"], result["out"], result["err"])


@functools.cache
def shared_tools() -> JavaTools:
    """The tools of the newest release in one JVM, for all tests of this process."""
    tools = JavaTools().__enter__()
    atexit.register(tools.__exit__)
    return tools
