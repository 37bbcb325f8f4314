"""The directories of a node, by its configuration."""

from __future__ import annotations

from kraftwire.log.settings import LogSettings
from kraftwire.node.config import NodeConfig
from kraftwire.replica.storage import Directories


def directories_of(config: NodeConfig) -> Directories:
    """Return the directories to lock and open, and the node that they must belong to."""
    return Directories(
        node_id=config.node_id,
        metadata=config.metadata_log_dir,
        others=config.log_dirs,
        topic=config.topic,
        settings=LogSettings(
            segment_bytes=config.segment_max_bytes, segment_ms=config.segment_max_ms
        ),
        is_self_formatted=config.is_raft_readme,
        source=config.path,
    )
