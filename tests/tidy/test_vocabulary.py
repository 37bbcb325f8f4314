"""One word for one thing, and nothing in a file that only made sense while it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.sources import GENERATED, ROOT, project_files, show

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

# Kafka's own default folders are facts; every other absolute path is one machine's.
MACHINE_PATH = re.compile(
    r"(?<![\w.~$}{)])/(?:work|root|home/\w+|Users/\w+|mnt|tmp(?!/kafka|/kraft-combined))(?:/|\b)"
)

REGISTRY_HOST = re.compile(
    r"pypi\.org|pythonhosted\.org|repo1?\.maven|maven\.org|npmjs\.(?:org|com)|proxy\.golang"
    r"|deb\.debian\.org|artifactory|nexus\."
)

# How a file was made does not belong in it.
BEHIND_THE_SCENES = re.compile(
    r"\b(?:this|previous|last|next|another|other|same) session\b|\bsessions? of the project\b"
    r"|\bthe (?:issue|brief|ticket)\b|\bissue #?\d|\bas (?:asked|requested|instructed)\b"
    r"|\bhelper (?:agent|session)|\b(?:LLM|ChatGPT|Claude|Copilot)\b|\bAI\b|\blanguage model\b"
    r"|\bacceptance criteri",
)

# Phrases that no native speaker uses. A reference manual says alternately, another implementation,
# back and forth, almost nothing; next to, a caller that, handle, again, dropped, silently, learns
# of, return, in transit, to fix, has finished, lags; cleanly, in the middle of, keeps leading, in
# flight; is not a file; Returns.
ODD = re.compile(
    r"\bby turns\b|\bof another make\b|\bno matter of\b|\bto and fro\b|\ball but nothing\b"
    r"|\bworth the name\b|\bmakes known\b|\bbeside\b|\bwhoever\b|\bheed(?:s|ed|_)?|\banew\b"
    r"|\bgives? way\b|\bin silence\b(?!\.)|\bhears? of\b|\bhand(?:s|ed)? out\b"
    r"|\bon their way (?:out|in)\b|\bto mend\b|\bcannot be had\b|\bis through with\b"
    r"|\bhow far .{0,30} are behind\b|\bin good order\b|\bin the midst\b|\bis to lead\b"
    r"|\bleads on\b|\bthe like of\b|\bhas it said\b|\bis in work\b|\bown_end\b|\bof the own\b"
    r"|^\s*Shape:|(?<!there )\b(?:is|are|was|were) no (?:hex|UTF-8|JSON|number|text|file\b|folder"
    r"|host|path|capture|voters?\b|escape|uuid|port\b|slot|storm|loss|proof|payload|part of|step up"
    r"|word)",
    re.IGNORECASE,
)

# Phrases banned in the folders that are free of them: silently, still, this many, otherwise.
MORE_ODD = re.compile(
    r"\bwithout a word\b|\ball the same\b|\bnobody's business\b|^\s*# Else\b|\"\"\"Else\b"
    r"|\bso (?:many|much) (?:bytes|seconds|records|milliseconds|elements|disks|members|topics)\b"
    r"|\bbehind (?:it|them|the (?:message|body|last|damage|record|hole|loss|header|frame))\b",
    re.IGNORECASE,
)
PLAIN = ("codegen", "examples", "tests", "tools")


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


def test_files_do_not_speak_of_their_own_making() -> None:
    """Who asked for a line, and when, is history; the file states what is true."""
    wrong = _found(BEHIND_THE_SCENES, _prose())
    assert not wrong, "\n".join(wrong)


def test_texts_are_plain_english() -> None:
    """A reader should not stumble over a phrase."""
    wrong = _found(ODD, _prose())
    plain = [path for path in _prose() if path.relative_to(ROOT).as_posix().startswith(PLAIN)]
    assert len(plain) > 300
    wrong += _found(MORE_ODD, plain)
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
    assert BEHIND_THE_SCENES.search("as the issue says")
    assert not BEHIND_THE_SCENES.search("session.timeout.ms of a fetch session")
    assert LEFT_OVER.search("# TODO: later")
    assert ODD.search("ours and Kafka's by turns")
    assert ODD.search("Whoever leads")
    assert ODD.search("heed_ack")
    assert ODD.search("2..1 is no step up")
    assert ODD.search("    Shape: two numbers")
    assert not ODD.search("besides, the caller hears nothing of the way out")
    assert not ODD.search("there is no file to read, and no voter is_no_port")
    assert MORE_ODD.search("bytes behind the message")
    assert not MORE_ODD.search("two seconds behind the leader")
