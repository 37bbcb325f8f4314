"""Tests of the stories of groups, transactions and topics."""
