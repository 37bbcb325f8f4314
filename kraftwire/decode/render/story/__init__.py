"""What stories of groups, transactions and topics have in common; see README.md."""
