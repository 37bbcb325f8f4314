"""Bring the message schemas of Kafka releases into schemas/.

python -m tools.import_schemas                 the releases that schemas/SOURCE.json names
python -m tools.import_schemas --add 9.9.9     one more release
python -m tools.import_schemas JAR...          from these jars, without Maven
python -m tools.import_schemas --layout        the layout of files that were edited by hand
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kraftwire.errors import UsageError
from tools.import_schemas.jars import Release, read_releases
from tools.import_schemas.maven import fetch_release
from tools.import_schemas.merge import union_of_releases, with_unreleased
from tools.import_schemas.renames import with_former_names
from tools.import_schemas.render import render_schema
from tools.import_schemas.report import wire_changes
from tools.import_schemas.schema import Message
from tools.import_schemas.texts import apply_texts, collect_texts
from tools.import_schemas.tree import (
    changed_files,
    read_jars,
    read_source,
    read_tree,
    tree_files,
    write_tree,
)

_ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 on success, 1 if --check finds differences, 2 for unusable input."""
    options = _options(arguments)
    try:
        if options.layout:
            return _lay_out(options.out, writes=not options.check)
        if options.jars and not options.shrink:
            _refuse_missing(options.jars, read_jars(options.out))
        releases = read_releases(options.jars or _fetch(options))
        files, lost = import_releases(releases, read_tree(options.out))
    except UsageError as error:
        print(f"import_schemas: {error}", file=sys.stderr)
        return 2
    if options.report and len(releases) > 1:
        print(wire_changes(releases[1].messages, releases[0].messages))
    for text in lost:
        print(f"import_schemas: dropped the text of {text}, which is gone", file=sys.stderr)
    if options.check:
        return _say_differences(changed_files(options.out, files))
    changed = write_tree(options.out, files)
    used = ", ".join(release.version for release in releases)
    print(f"{len(files) - 1} schemas from Kafka {used}: {len(changed)} files changed")
    return 0


def _lay_out(folder: Path, *, writes: bool) -> int:
    """Write every schema as an import would, with its facts and texts as they are.

    Where it does not write it lists the files that differ; the result is then 1 if there are any.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder of schemas")
    files = {
        path: render_schema(message)
        for name, message in read_tree(folder).items()
        for path in folder.glob(f"*/{name}.json")
    }
    changed = [path for path, text in files.items() if path.read_text("utf-8") != text]
    for path in changed:
        if writes:
            path.write_text(files[path], "utf-8")
        else:
            print(f"another layout: {path.relative_to(folder)}", file=sys.stderr)
    print(f"{len(changed)} files changed" if writes else f"{len(changed)} files differ")
    return 1 if changed and not writes else 0


def import_releases(
    releases: Sequence[Release], present: Mapping[str, Message]
) -> tuple[dict[str, str], list[str]]:
    """The files of ``schemas/`` for these releases, with the texts that are there at present.

    Returns the files by relative path, and the texts that no longer have a place.
    """
    union = union_of_releases([release.messages for release in releases])
    lost = []
    for name, message in present.items():
        texts = collect_texts(message)
        if name in union:
            union[name] = with_former_names(with_unreleased(union[name], message), message)
            union[name] = apply_texts(union[name], texts)
        kept = {*collect_texts(union[name]).values()} if name in union else {}
        lost += [f"{name} {path}".strip() for path, text in texts.items() if text not in kept]
    return tree_files(union, releases), lost


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.import_schemas", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("jars", nargs="*", type=Path, help="jars of one or more releases")
    parser.add_argument(
        "--add", action="append", default=[], metavar="RELEASE", help="fetch this release as well"
    )
    parser.add_argument(
        "--report", action="store_true", help="print what changed between the newest two releases"
    )
    parser.add_argument(
        "--shrink", action="store_true", help="drop what is only in jars that are not named here"
    )
    parser.add_argument(
        "--layout", action="store_true", help="only rewrite the files in their layout"
    )
    parser.add_argument("--check", action="store_true", help="write nothing, list differences")
    parser.add_argument("--out", type=Path, default=_ROOT / "schemas", help="default: schemas/")
    parser.add_argument(
        "--cache", type=Path, default=_ROOT / ".cache" / "kafka-jars", help="folder of Maven's jars"
    )
    return parser.parse_args(arguments)


def _refuse_missing(jars: Sequence[Path], source: Mapping[str, Sequence[str]]) -> None:
    """Refuse to run without some of the jars: ``schemas/`` would lose messages and versions."""
    given = {jar.name for jar in jars}
    lines = [
        f"{release}: {', '.join(sorted(missing))}"
        for release, names in source.items()
        if (missing := set(names) - given)
    ]
    if lines:
        raise UsageError(
            "schemas/ was made from jars that are not named (--shrink drops what they hold): "
            + "; ".join(lines)
        )


def _fetch(options: argparse.Namespace) -> list[Path]:
    wanted = [*read_source(options.out), *options.add]
    if not wanted:
        raise UsageError(f"{options.out} names no release; --add RELEASE fetches one")
    return [
        jar for release in dict.fromkeys(wanted) for jar in fetch_release(release, options.cache)
    ]


def _say_differences(changed: list[str]) -> int:
    for path in changed:
        print(path)
    print(f"{len(changed)} files differ" if changed else "schemas/ is current")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
