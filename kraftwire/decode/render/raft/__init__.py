"""The story of a KRaft quorum: leaders, votes, voters and the metadata log; see README.md."""

from __future__ import annotations

from kraftwire.decode.render.raft.json_form import story_to_json
from kraftwire.decode.render.raft.sighting import QUORUM_APIS, Sighting
from kraftwire.decode.render.raft.text import write_story
from kraftwire.decode.render.raft.timeline import Timeline

__all__ = ["QUORUM_APIS", "Sighting", "Timeline", "story_to_json", "write_story"]
