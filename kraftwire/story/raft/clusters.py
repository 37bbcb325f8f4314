"""Assigns frames and files to clusters, and makes one story for each cluster.

Owns only this choice. The requests of KRaft carry the cluster's id; other frames to the same server
belong to the same cluster. While only one cluster is known, all frames belong to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire.capture.framing.frames import Ending, RawFrame
from kraftwire.capture.recorded import Recordings
from kraftwire.decode.files.kinds import FileKind
from kraftwire.limits import RAFT_PENDING_COUNT_MAX
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.story.raft.model import Story
from kraftwire.story.raft.replica_files import is_of_metadata_log
from kraftwire.story.raft.timeline import Timeline
from kraftwire.wire.message import Message

# Clusters of one capture whose histories are shown separately.
RAFT_CLUSTER_COUNT_MAX = 64


class Clusters:
    """Makes the stories of all clusters.

    Order: as for `Timeline`, of which there is one for each cluster; the first one also gets
    everything before the first cluster id. `recordings` are those of all frames.
    """

    def __init__(self, *, show_secrets: bool = False) -> None:
        self.recordings = Recordings()
        self.first = Timeline(self.recordings, show_secrets=show_secrets)
        self._show_secrets = show_secrets
        self._by_id: dict[str, Timeline] = {}
        # Host and port -> cluster id, and log directory -> cluster id.
        self._servers: dict[str, str] = {}
        self._directories: dict[str, str] = {}
        # Log directories that name no cluster; in order.
        self._unowned: dict[str, None] = {}

    def on_frame(
        self, frame: RawFrame, body: Message | None = None, request: Message | None = None
    ) -> None:
        """Add a frame to the story of its cluster. Arguments: as for `Timeline.on_frame`."""
        timeline = self._of_frame(frame, body, request)
        if timeline is not None:
            timeline.on_frame(frame, body, request)

    def on_ending(self, ending: Ending) -> None:
        """Add the end of a connection to the story of its cluster."""
        timeline = self._of_server(ending.connection.rpartition("-")[2])
        if timeline is not None:
            timeline.on_ending(ending)

    def on_state(self, kind: FileKind, file: str, data: dict[str, Any]) -> None:
        """Add a state file of a log directory: of meta.properties, also the cluster's id."""
        if kind is not FileKind.META_PROPERTIES:
            if is_of_metadata_log(file) is not False:
                self.of_file(file).files.on_state(kind, file, data)
            return
        folder, cluster = _folder(file), str(data.get("cluster.id") or "")
        if cluster and len(self._directories) < RAFT_PENDING_COUNT_MAX:
            self._directories[folder] = cluster
        self._of_folder(folder).files.on_state(kind, file, data)

    def on_refusal(self, folder: str, refusal: str) -> None:
        """Note why a node does not start on a log directory. Order: after its files."""
        self._of_folder(folder.rstrip("/")).files.on_refusal(folder, refusal)

    def of_file(self, file: str) -> Timeline:
        """Return the timeline for a file of a partition."""
        folder = _folder(_folder(file))
        if folder not in self._directories and len(self._unowned) < RAFT_PENDING_COUNT_MAX:
            self._unowned.setdefault(folder or ".")
        return self._of_folder(folder)

    def _of_folder(self, folder: str) -> Timeline:
        """Return the timeline for a log directory; the first one if nothing names its cluster."""
        cluster = self._directories.get(folder)
        return self.first if cluster is None else self._of_id(cluster)

    def stories(self) -> Iterator[Story]:
        """Yield the stories of all clusters that have events, or else one empty story."""
        names: dict[int, str] = {id(timeline): name for name, timeline in self._by_id.items()}
        timelines = {id(each): each for each in (self.first, *self._by_id.values())}
        found = []
        for key, timeline in timelines.items():
            is_guess = timeline is self.first and len(self._by_id) > 1
            unowned = list(self._unowned) if is_guess else []
            story = timeline.story(unowned)
            story.cluster, story.unowned = names.get(key), unowned
            found.append(story)
        yield from [each for each in found if not each.is_empty] or found[:1]

    def _of_frame(
        self, frame: RawFrame, body: Message | None, request: Message | None
    ) -> Timeline | None:
        server = frame.server
        cluster = _cluster_id(body)
        if frame.is_request and cluster:
            self._learn(server, cluster, is_sure=False)
            if isinstance(body, BrokerRegistrationRequest):
                for each in body.listeners:
                    self._learn(f"{each.host}:{each.port}", cluster, is_sure=False)
            return self._of_id(cluster)
        requested = None if frame.is_request else _cluster_id(request)
        if requested and getattr(body, "error_code", 0) != ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._learn(server, requested, is_sure=True)
        return self._of_id(requested) if requested else self._of_server(server)

    def _learn(self, server: str, cluster: str, *, is_sure: bool) -> None:
        """Note the cluster of a server.

        A request alone is not sure evidence, as it may have been sent to a wrong server.
        """
        if is_sure or (
            server not in self._servers and len(self._servers) < RAFT_PENDING_COUNT_MAX
        ):
            self._servers[server] = cluster

    def _of_server(self, server: str) -> Timeline | None:
        """Return the timeline for frames of a server; None if its cluster is not known."""
        cluster = self._servers.get(server)
        if cluster is not None:
            return self._of_id(cluster)
        return self.first if len(self._by_id) <= 1 else None

    def _of_id(self, cluster: str) -> Timeline:
        known = self._by_id.get(cluster)
        if known is not None:
            return known
        if len(self._by_id) >= RAFT_CLUSTER_COUNT_MAX:
            return self.first
        made = self.first
        if self._by_id:
            made = Timeline(self.recordings, show_secrets=self._show_secrets)
        return self._by_id.setdefault(cluster, made)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _cluster_id(body: Any) -> str:
    """Return the cluster id in a request, or an empty string."""
    return getattr(body, "cluster_id", None) or ""
