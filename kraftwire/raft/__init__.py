"""The Raft core of a quorum: decisions without files, sockets, clocks or randomness."""
