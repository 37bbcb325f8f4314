"""Names of clusters on the page: said only where there is more than one."""

from __future__ import annotations

from kraftwire.spark.report.folder import Folder

__all__ = ["ClusterNames"]

_TABLES = ("raft_timeline", "replica_lag", "groups", "group_lag")
_LETTERS = 6


class ClusterNames:
    """The clusters that the tables of a folder tell of."""

    def __init__(self, folder: Folder) -> None:
        self._all: set[str | None] = set()
        for name in _TABLES:
            self._all.update(folder.table(name, ["cluster"])["cluster"].unique().to_pylist())

    @property
    def are_several(self) -> bool:
        """Whether things of two clusters could be taken for each other's."""
        return len(self._all - {None}) > 1

    def after(self, cluster: str | None) -> str:
        """What to say after the name of a thing of a cluster; nothing if there is only one."""
        if not self.are_several:
            return ""
        return f" in {cluster[:_LETTERS]}…" if cluster else " in an unknown cluster"
