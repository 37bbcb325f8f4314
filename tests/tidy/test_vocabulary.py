"""One word for one thing, and nothing in a file that only made sense while it was written."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.sources import GENERATED, ROOT, parse, project_files, python_files, show

PROSE = {
    ".md", ".py", ".pyi", ".j2", ".toml", ".c", ".h", ".java", ".go", ".js", ".txt", ".sh", ".cfg",
    ".ini", ".yml", ".yaml", "",
}  # fmt: skip

# The papers' words for what Kafka calls: leader epoch, offset, high watermark, log end offset,
# record batch, observer; and the papers' names of the RPCs.
SYNONYMS = re.compile(
    r"""(?<![-\w])(?:
        terms?(?!\s+of) | \w+_term | term_\w+ | currentTerm
      | commit[ _]index | commitIndex | last[ _]applied | lastApplied
      | (?:match|next|last|prev|log)_?[ _](?:log[ _])?index | (?:match|next)Index
      | log[ _]ent(?:ry|ries) | leader[ _]commit
      | append[ _]?entries | request[ _]votes? | install[ _]?snapshot
      | learners? | non-voters?
    )(?![-\w])""",
    re.VERBOSE | re.IGNORECASE,
)

LEFT_OVER = re.compile(r"\b(?:TODO|FIXME|HACK|XXX)\b")

CONFLICT = re.compile(r"^(<{7}|>{7}) ")

# Kafka's own default folders are facts; every other absolute path is one machine's.
MACHINE_PATH = re.compile(
    r"(?<![\w.~$}{)])/(?:work|root|home/\w+|Users/\w+|mnt|tmp(?!/kafka|/kraft-combined))(?:/|\b)"
)

REGISTRY_HOST = re.compile(
    r"pypi\.org|pythonhosted\.org|repo1?\.maven|maven\.org|npmjs\.(?:org|com)|proxy\.golang"
    r"|deb\.debian\.org|artifactory|nexus\."
)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    yield from enumerate(path.read_text(encoding="utf-8").splitlines(), 1)


def _prose() -> list[Path]:
    """Every text that people wrote; this file has to spell out what it rejects."""
    skipped = {Path(__file__).resolve(), ROOT / "LICENSE"}
    return [p for p in project_files() if p.suffix in PROSE and p not in skipped and _is_text(p)]


def _is_text(path: Path) -> bool:
    return b"\0" not in path.read_bytes()[:4096]


def _found(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{show(path, number)}: {match[0]!r} in {line.strip()[:80]!r}"
        for path in paths
        for number, line in _lines(path)
        if (match := pattern.search(line))
    ]


def test_the_raft_core_and_the_documents_speak_kafkas_language() -> None:
    """A reader who compares with Kafka must not have to translate.

    A word in quotation marks is mentioned, not used: a glossary may say what the papers say.
    """
    core = ROOT / "kraftwire" / "raft"
    paths = [p for p in _prose() if core in p.parents or p.suffix == ".md"]
    wrong = []
    for path in paths:
        for number, line in _lines(path):
            used = re.sub(r"\"[^\"]*\"|“[^”]*”", "", line)
            if match := SYNONYMS.search(used):
                wrong.append(f"{show(path, number)}: {match[0]!r}")
    assert not wrong, "\n".join(wrong)


def test_nothing_is_left_for_later() -> None:
    """What is missing is written down where it is planned, not in the code."""
    wrong = _found(LEFT_OVER, _prose())
    assert not wrong, "\n".join(wrong)


def test_no_path_of_one_machine_is_written_down() -> None:
    """The project works from any folder."""
    wrong = _found(MACHINE_PATH, [p for p in _prose() if GENERATED not in p.parents])
    assert not wrong, "\n".join(wrong)


def test_no_package_registry_is_named() -> None:
    """Which registry or mirror serves the packages is a matter of each machine's set-up."""
    wrong = _found(REGISTRY_HOST, _prose())
    assert not wrong, "\n".join(wrong)


def test_no_conflict_is_left_from_a_merge() -> None:
    """Within a text no other check notices the marks."""
    wrong = _found(CONFLICT, _prose())
    assert not wrong, "\n".join(wrong)


def _types(path: Path) -> Iterator[str]:
    """The public classes and aliases of types that a module defines."""
    for node in parse(path).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name[0].isupper() and not name.isupper():
                yield name


def test_a_type_has_its_name_alone_in_its_package() -> None:
    """Who meets two of them in one package takes the one for the other."""
    owners: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for path in python_files("kraftwire"):
        if GENERATED not in path.parents:
            for name in _types(path):
                if not name.startswith("_"):
                    owners[path.relative_to(ROOT).parts[1], name].append(show(path))
    wrong = [f"{name}: {', '.join(paths)}" for (_, name), paths in owners.items() if paths[1:]]
    assert not wrong, "\n".join(wrong)


def test_the_patterns_find_what_they_are_for() -> None:
    """A pattern that matches nothing enforces nothing."""
    assert SYNONYMS.search("the current term is 3")
    assert SYNONYMS.search("its commit index")
    assert not SYNONYMS.search("the leader epoch, long-term, determine, in terms of bytes")
    assert MACHINE_PATH.search("see /work/x") is not None
    assert MACHINE_PATH.search('"/tmp/abc"') is not None
    assert MACHINE_PATH.search("log.dirs=/tmp/kafka-logs") is None
    assert MACHINE_PATH.search("tests/work/x") is None
    assert CONFLICT.search("<<<<<<< HEAD")
    assert CONFLICT.search(">>>>>>> 0123abcd (controller: support it)")
    assert LEFT_OVER.search("# TODO: later")
