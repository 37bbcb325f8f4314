"""All mutants, by what they break."""

from __future__ import annotations

from tests.mutants.catalogue import (
    controller,
    elections,
    leaders,
    links,
    logs,
    members,
    replication,
    snapshots,
)
from tests.mutants.mutant import Mutant

__all__ = ["ALL"]

ALL: tuple[Mutant, ...] = (
    *elections.MUTANTS,
    *leaders.MUTANTS,
    *replication.MUTANTS,
    *members.MUTANTS,
    *snapshots.MUTANTS,
    *logs.MUTANTS,
    *links.MUTANTS,
    *controller.MUTANTS,
)
