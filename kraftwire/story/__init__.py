"""Derives the histories of quorums, groups, transactions and topics from captures and logs."""
