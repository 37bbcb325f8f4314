"""Which marks the tests of a folder have; a slow file of a fast folder is marked in the file.

``-m "not slow"`` selects what `make quick` runs, ``-m "not full"`` what `make test` runs.
"""

from __future__ import annotations

# Folder, path or test id under `tests` -> marks. The longest that a test's id begins with counts.
MARKS: dict[str, tuple[str, ...]] = {
    "compat/": (),
    "crash/": ("search", "slow"),
    "engine/": ("search", "slow"),
    "fuzz/": ("search", "slow"),
    "history/": ("search", "slow"),
    "hostile/": ("hostile", "slow"),
    "interop/": ("interop", "slow"),
    "mutants/": ("search", "slow"),
    "nemesis/": ("search", "slow"),
    "oracle/": (),
    "scenarios/": (),
    "simulation/": ("search", "slow"),
    "spark/": ("spark", "slow"),
    "spark/captures/test_exchanges": ("spark",),
    "spark/captures/test_rows": ("spark",),
    "spark/logs/test_log_tables": ("spark",),
    "spark/tables/": ("spark",),
    "spark/test_paths": ("spark",),
    "tidy/": (),
    "tidy/test_circles": ("slow",),
    "tidy/test_coming_from": ("slow",),
    "tidy/test_hops": ("slow",),
    "tidy/test_readme": ("slow",),
    "tidy/test_readme_files": (),
    "tidy/test_recipes": ("slow",),
    "tidy/test_wheel": ("slow",),
    "unit/": (),
    "unit/capture/": ("portable",),
    "unit/capture/test_bytes": ("portable", "slow"),
    "unit/capture/test_in_order": ("portable", "slow"),
    "unit/capture/test_tls": ("portable", "slow"),
    "unit/cli/test_decode": ("slow",),
    "unit/cli/test_main": ("slow",),
    "unit/cli/test_perf": ("slow",),
    "unit/cli/test_verbs": ("slow",),
    "unit/codegen/test_every_construct": ("slow",),
    "unit/decode/": ("portable",),
    "unit/decode/files/test_dump_log": ("portable", "slow"),
    "unit/decode/test_api": ("portable", "slow"),
    "unit/decode/test_secrets": ("portable", "slow"),
    "unit/inspect/": ("portable",),
    "unit/inspect/test_compare": ("portable", "slow"),
    "unit/inspect/test_merged": ("portable", "slow"),
    "unit/inspect/test_rotated": ("portable", "slow"),
    "unit/inspect/test_stats": ("portable", "slow"),
    "unit/node/test_logins": ("slow",),
    "unit/node/test_perf": ("slow",),
    "unit/protocol/test_pcapng": ("slow",),
    "unit/raft/test_parked": ("slow",),
    "unit/records/": ("portable",),
    "unit/records/test_logs": ("portable", "slow"),
    "unit/security/test_stores": ("slow",),
    "unit/story/": ("portable",),
    "unit/story/raft/test_capture": ("portable", "slow"),
    "unit/story/test_groups": ("portable", "slow"),
    "unit/tools/test_proxy": ("slow",),
    "unit/tools/test_repeat_capture": ("slow",),
    "unit/transport/test_client_connection": ("slow",),
    "unit/transport/test_client_security": ("slow",),
    "unit/transport/test_handshakes": ("slow",),
    "unit/wire/": ("portable",),
}

# File -> beginnings of the names of long tests. Each shows what a test beside it shows, in one more
# case or at full size.
LONG_CASES = {
    "fuzz/test_raft_hostile.py": (
        "test_hostile_peers_cannot_harm_a_core_in_the_long_run",
    ),
    "hostile/test_bombs.py": (
        "test_bytes_of_very_many_records_are_not_kept",
        "test_lines_of_many_headers_are_not_kept",
        "test_millions_of_records_are_a_finding[gzip]",
        "test_millions_of_records_are_a_finding[lz4]",
        "test_millions_of_records_are_a_finding[snappy]",
    ),
    "hostile/test_capture_memory.py": (
        "test_captures_share_one_budget[_unanswered",
        "test_connections_and_names_cost_little[closed",
        "test_connections_and_names_cost_little[half",
        "test_connections_and_names_cost_little[unheard-stats",
        "test_connections_and_names_cost_little[used-stats",
    ),
    "hostile/test_dense.py": (
        "test_a_long_frame_in_a_small_capture_is_cut[bytes",
        "test_a_long_frame_in_a_small_capture_is_cut[values",
        "test_requests_that_wait_hold_no_objects",
    ),
    "hostile/test_diff.py": (
        "test_batches_that_are_all_damaged_are_counted",
    ),
    "interop/test_bearer_java.py": (
        "test_each_in_turn_is_killed",
    ),
    "interop/test_broker_starts.py": (
        "test_a_broker_starts_on_a_controller_of_ours[kraft.version 0-3.7",
        "test_a_broker_starts_on_a_controller_of_ours[kraft.version 0-4",
        "test_a_broker_starts_on_a_controller_of_ours[kraft.version 1-3",
        "test_a_broker_starts_on_a_controller_of_ours[kraft.version 1-4.0",
    ),
    "interop/test_brokers.py": (
        "test_brokers_live_on_controllers_of_ours[one",
        "test_brokers_of_older_releases[kraft.version 0",
        "test_brokers_of_older_releases[kraft.version 1-java 3.9.2-3.9",
    ),
    "interop/test_clients.py": (
        "test_a_client_connects_negotiates_describes_and_reads[sarama]",
        "test_a_client_connects_negotiates_describes_and_reads[segmentio",
        "test_a_client_does_the_same_after_a_login[Kafka's tools]",
        "test_a_client_does_the_same_after_a_login[sarama]",
        "test_a_client_does_the_same_after_a_login[segmentio",
    ),
    "interop/test_clients_on_brokers.py": tuple(
        f"test_a_client_does_everything_that_it_has_a_call_for[{name}"
        for name in (
            *("@platformatic", "Kafka's Java", "aiokafka", "confluent", "franz-go"),
            *("kafkajs", "kcat", "sarama", "segmentio"),
        )
    ),
    "interop/test_dynamic_voters.py": (
        "test_a_removed_leader_keeps_leading_until_the_removal_is_committed[2",
        "test_a_removed_leader_keeps_leading_until_the_removal_is_committed[3",
        "test_a_running_quorum_takes_a_voter_and_lets_it_go_and_takes_it_wiped[2",
        "test_a_running_quorum_takes_a_voter_and_lets_it_go_and_takes_it_wiped[3",
        "test_a_static_quorum_becomes_dynamic[java]",
    ),
    "interop/test_kafka_process.py": (
        "test_a_quorum_keeps_its_leader_when_a_killed_voter_comes_back",
    ),
    "interop/test_kerberos_java.py": (
        "test_either_kind_leads_when_the_other_is_killed",
    ),
    "interop/test_mixed_controllers.py": (
        "test_java_logs_no_error_that_it_would_not_log_alone",
        "test_leadership_moves_both_ways_while_clients_work[two",
    ),
    "interop/test_mixed_rolling.py": (
        "test_a_quorum_is_upgraded_next_to_ours[step by step",
    ),
    "interop/test_mixed_sasl_ssl.py": (
        "test_controllers_change_to_scram_once_the_log_has_users",
    ),
    "interop/test_mixed_snapshots.py": (
        "test_a_voter_that_is_50_000_records_late_catches_up",
        "test_directories_with_snapshots_change_hands",
    ),
    "interop/test_perf_java.py": (
        "test_a_mixed_quorum_of_test_servers_elects_and_commits[java]",
    ),
    "interop/test_recover.py": (
        "test_kafka_goes_on_after_two_of_three_controllers_are_lost[kraft.version 0]",
        "test_kafkas_other_survivor_starts_empty_and_is_added",
        "test_kafkas_static_voter_starts_empty_and_copies_the_log",
    ),
    "interop/test_replacing.py": (
        "test_a_controller_whose_disk_is_gone_comes_back_under_its_id[Kafka]",
        "test_a_dead_controller_is_replaced_by_a_new_one[Kafka",
        "test_a_dead_controller_is_replaced_by_a_new_one[kraftwire-a follower]",
        "test_a_living_leader_is_replaced[Kafka]",
    ),
    "interop/test_secured_clusters.py": (
        "test_every_secured_listener_is_reached_with_kafkas_own_file[CONTROLLER_LOGIN PLAIN",
        "test_every_secured_listener_is_reached_with_kafkas_own_file[LOGIN SCRAM",
        "test_every_secured_listener_is_reached_with_kafkas_own_file[TLS",
    ),
    "interop/test_secured_quorum.py": (
        "test_java_controllers_elect_our_node",
    ),
    "interop/test_secured_quorum_tls.py": (
        "test_each_in_turn_is_killed",
    ),
    "interop/test_tools_and_quorums.py": (
        "test_a_controller_is_added_and_removed[kraftwire-kraftwire's tool]",
    ),
    "spark/captures/test_cuts.py": tuple(
        f"test_parts_give_what_the_whole_gives[{first}]" for first in (40, 60, 80, 100)
    ),
    "spark/logs/test_memory.py": (
        "test_memory_is_bounded[Python",
    ),
    "spark/run/test_on_spark.py": (
        "test_a_folder_may_have_any_name",
        "test_tables_are_the_same_on_spark[all tables]",
    ),
    "spark/tail/test_rounds.py": tuple(
        f"test_rounds_over_growing_logs_give_the_tables_of_one_run[{seed}]" for seed in range(3, 8)
    ),
    "tidy/test_recipes.py": (
        "test_a_recipe_leads_to_its_end[1",
        "test_a_recipe_leads_to_its_end[3",
        "test_a_recipe_leads_to_its_end[4",
    ),
}

_FULL = tuple(f"{file}::{name}" for file, names in LONG_CASES.items() for name in names)

QUICK = "not slow"


def marks_of(test: str) -> tuple[str, ...]:
    """The marks of a test, or of a file of tests, whose id or path begins below `tests`."""
    fitting = [prefix for prefix in MARKS if test.startswith(prefix)]
    found = MARKS[max(fitting, key=len)] if fitting else ()
    return (*found, "full") if test.startswith(_FULL) else found


def has_only_slow(path: str) -> bool:
    """Whether all tests of a folder or file below `tests` are slow: it need not be loaded."""
    inside = (marks for prefix, marks in MARKS.items() if prefix.startswith(f"{path}/"))
    return "slow" in marks_of(f"{path}/") and all("slow" in marks for marks in inside)
