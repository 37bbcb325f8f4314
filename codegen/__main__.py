"""Command line: ``python -m codegen generate | --check | --explain MESSAGE``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from codegen.errors import SchemaError
from codegen.explain import explain
from codegen.generate import compare, generate, load_valid

_ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code (0 fine, 1 out of date or bad schema)."""
    parser = argparse.ArgumentParser(prog="python -m codegen", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["generate"], help="write the modules")
    parser.add_argument("--check", action="store_true", help="fail if the modules are not current")
    parser.add_argument("--explain", metavar="MESSAGE", help="show what is planned for a message")
    parser.add_argument("--schemas", type=Path, default=_ROOT / "schemas")
    parser.add_argument("--target", type=Path, default=_ROOT / "kraftwire" / "messages")
    options = parser.parse_args(arguments)
    if not (options.command or options.check or options.explain):
        parser.error("expected generate, --check or --explain MESSAGE")
    try:
        return _run(options)
    except SchemaError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader, such as `head`, has read enough; discard what is still buffered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(options: argparse.Namespace) -> int:
    if options.explain:
        print(explain(load_valid(options.schemas), options.explain), flush=True)
        return 0
    if options.check:
        difference = compare(options.schemas, options.target)
        if difference:
            print(difference, file=sys.stderr)
            print("run: python -m codegen generate", file=sys.stderr)
            return 1
        return 0
    difference = generate(options.schemas, options.target)
    print(difference or "everything was current")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
