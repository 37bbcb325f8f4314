"""`kraftwire pipeline tables`: the columns of the tables."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from kraftwire.cli.tables import heading, paragraph, show, table

if TYPE_CHECKING:
    from kraftwire.spark.tables import AnyTable

_TAGS = (
    "The last column of every table is tags, map<string,string>: the values of "
    "`kraftwire pipeline run --tag KEY=VALUE`."
)
_TYPED = (
    "There are also {count} typed tables, one for each request and response, with all its fields: "
    "fetch_request, fetch_response, ... A run writes those that `kraftwire pipeline run --tables` "
    "names."
)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
def tables(names: tuple[str, ...]) -> None:
    """Describe the tables, column by column.

    NAME is a table, a pattern such as '*_lag', or all. Without a name: all but the typed tables,
    of which there is one for each request and response.

    \b
      kraftwire pipeline tables
      kraftwire pipeline tables exchanges fetch_response
      kraftwire pipeline tables 'vote_*'
    """
    if find_spec("pyarrow") is None:
        raise click.ClickException("pyarrow is not installed: pip install 'kraftwire[report]'")
    from kraftwire.spark.tables import TABLES, find_table, matching
    from kraftwire.spark.tables.apis import TYPED_TABLES

    lines: list[str] = []
    for name in matching(names) if names else TABLES:
        lines += [*_described(find_table(name)), ""]
    if not names:
        lines += [*paragraph(_TAGS), ""]
        lines += [*paragraph(_TYPED.format(count=len(TYPED_TABLES))), ""]
    show(lines[:-1])


def _described(one: AnyTable) -> list[str]:
    rows = [(column.name, column.type, column.about) for column in one.columns]
    return [heading(one.name), *paragraph(one.about), *table(("COLUMN", "TYPE", ""), rows)]
