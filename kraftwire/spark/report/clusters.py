"""Names of clusters on the page, shown only if there is more than one."""

from __future__ import annotations

from kraftwire.spark.report.folder import Folder

__all__ = ["ClusterNames"]

_TABLES = ("raft_timeline", "replica_lag", "groups", "group_lag")
_LETTERS = 6


class ClusterNames:
    """The clusters in the tables of a folder."""

    def __init__(self, folder: Folder) -> None:
        self._all: set[str | None] = set()
        for name in _TABLES:
            self._all.update(folder.table(name, ["cluster"])["cluster"].unique().to_pylist())

    @property
    def are_several(self) -> bool:
        """Whether there is more than one cluster."""
        return len(self._all - {None}) > 1

    def after(self, cluster: str | None) -> str:
        """Return the words after the name of something in a cluster; none if there is only one."""
        if not self.are_several:
            return ""
        return f" in {cluster[:_LETTERS]}…" if cluster else " in an unknown cluster"
