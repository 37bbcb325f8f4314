"""What names an input: paths, and the URIs that every source of Spark takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import UsageError
from kraftwire.spark.paths import expanded, folder_values, has_name, local_path, require


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("logs/a-0", "logs/a-0"),
        ("/logs/a-0", "/logs/a-0"),
        ("file:/logs/a-0", "/logs/a-0"),
        ("file:///logs/a-0", "/logs/a-0"),
        ("FILE:///logs/a%20b-0", "/logs/a b-0"),
        ("file://localhost/logs/a-0", "/logs/a-0"),
        ("file:/logs/part-?/*#1", "/logs/part-?/*#1"),
        ("c:logs", "c:logs"),
    ],
)
def test_uris_of_files_are_their_paths(text: str, path: str) -> None:
    """Programs build them from Java's paths."""
    assert local_path(text) == path


def test_a_file_that_is_there_is_no_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names may have colons."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3a:").mkdir()
    (tmp_path / "s3a:" / "x").touch()
    assert local_path("s3a:/x") == "s3a:/x"


def test_a_uri_may_have_the_name_as_it_stands(tmp_path: Path) -> None:
    """As Hadoop reads it."""
    path = tmp_path / "a%20b"
    path.touch()
    assert local_path(f"file://{path}") == str(path)


@pytest.mark.parametrize("text", ["file://otherhost/logs", "file://logs"])
def test_a_uri_of_another_host_is_refused(text: str) -> None:
    """Its path would name other files, or none, of this host."""
    with pytest.raises(UsageError, match=r"names the host \w+: write file:///PATH"):
        local_path(text)


@pytest.mark.parametrize("text", ["s3a://bucket/logs", "hdfs:///logs", "abfss://c@a/logs"])
def test_other_file_systems_are_refused_with_what_to_do(text: str) -> None:
    """In one sentence."""
    with pytest.raises(UsageError, match=r"mount .*:// as a folder, or copy"):
        local_path(text)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("day={20,22}/*", ["day=20/a.pcap"]),
        ("day=2{0,1}/{a,b.p}*", ["day=20/a.pcap", "day=21/b.pcap"]),
        ("day={2{0,1},3?}/*", ["day=20/a.pcap", "day=21/b.pcap"]),
        ("day=2[^0]/*", ["day=21/b.pcap"]),
        ("**/[a-b].pcap", ["day=20/a.pcap", "day=21/b.pcap"]),
        ("{day=20", ["{day=20"]),
    ],
)
def test_patterns_are_those_of_hadoop(
    pattern: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some alternatives may lead to nothing, as in every source of Spark, but not all of them."""
    monkeypatch.chdir(tmp_path)
    for name in ("day=20/a.pcap", "day=21/b.pcap", "{day=20"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    assert [str(path) for path in expanded([pattern])] == found
    require([pattern, *found])
    with pytest.raises(UsageError, match=r"day=\{22,23\}: no such file or folder"):
        require([pattern, "day={22,23}"])


def test_a_pattern_of_names_is_about_names_alone() -> None:
    """Not about the folders."""
    assert has_name(Path("x/day=20/a.pcap"), "{a,b}.pcap*")
    assert not has_name(Path("a.pcap/c"), "{a,b}.pcap*")


def test_folders_between_a_path_and_its_files_have_values(tmp_path: Path) -> None:
    """Those above it do not, so that a path says what is in the tables."""
    tops = [tmp_path / "x" / "day=20", tmp_path / "x"]
    file = tmp_path / "x" / "day=20" / "raw" / "at=10%3A00" / "=" / "a=b.pcap"
    assert folder_values(file, tops) == {"day": "20", "at": "10:00"}
    assert folder_values(file, tops[:1]) == {"at": "10:00"}
    assert folder_values(file, [file]) == folder_values(file, [tmp_path / "y"]) == {}
