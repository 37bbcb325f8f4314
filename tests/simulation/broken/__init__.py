"""Rules broken on purpose, one in each module: `break_rule(patch)` puts the bug in.

`FOUND_BY` names the invariants that may object first; `SEED` is where a search starts; `plan`,
where there is one, makes the clusters in which the rule matters.
"""
