"""The common parts of the stories of groups, transactions and topics; see README.md."""
