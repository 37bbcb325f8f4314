"""What is concluded from evidence: timelines of quorums, groups, transactions and topics."""
