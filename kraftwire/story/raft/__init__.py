"""The story of a KRaft quorum: leaders, votes, voters and the metadata log."""
