"""Brings the message schemas of Kafka's release jars into ``schemas/``.

Reads the jars (`jars`, `maven`), keeps the facts (`schema`), merges the releases (`merge`), keeps
our own texts (`texts`), writes tidy files (`tree`, `render`), and reports what changed (`report`).
"""
