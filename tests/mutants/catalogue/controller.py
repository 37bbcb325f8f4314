"""Rules of the active controller: brokers, leaders, in-sync replicas, sessions."""

from __future__ import annotations

from tests.history.putting_back import Edit
from tests.mutants.mutant import Mutant

_WORLD = "tests/simulation/test_controlled.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "any replica is elected without permission",
        "C-PCB-5, M2",
        Edit(
            "kraftwire.controller.partition_changes:_PartitionChange._elected",
            "if self._target.election is Election.UNCLEAN:",
            "if True:",
        ),
        _WORLD,
    ),
    Mutant(
        "a leader elected uncleanly does not recover",
        "C-PCB-6, M2",
        Edit(
            "kraftwire.controller.partition_changes:_PartitionChange._elect",
            'self._set("leader_recovery_state", RECOVERING)',
            "pass",
        ),
        _WORLD,
    ),
    Mutant(
        "an unclean stop leaves the eligible replicas as they are",
        "C-REG-5, M2",
        Edit(
            "kraftwire.controller.brokers:_out_of_sync",
            "keys = [*topics.in_isr(broker_id), *topics.in_elr(broker_id)]",
            "keys = topics.in_isr(broker_id)",
        ),
        _WORLD,
    ),
    Mutant(
        "a fenced broker goes on leading",
        "C-FEN, M5",
        Edit(
            "kraftwire.controller.brokers:_state_records",
            "return [*moved, (change, 0)]",
            "return [(change, 0)]",
        ),
        _WORLD,
    ),
    Mutant(
        "a session that has just ended is not looked at",
        "C-HB-11, M7",
        Edit(
            "kraftwire.controller.sessions:Sessions.expired",
            "item[1] <= before",
            "item[1] < before",
        ),
        _WORLD,
    ),
    Mutant(
        "a broker that lags is unfenced",
        "C-HB-6, M7",
        Edit(
            "kraftwire.controller.brokers:_next_state",
            "request.current_metadata_offset < broker.offset",
            "False",
        ),
        _WORLD,
    ),
    Mutant(
        "a change of in-sync replicas may be stale",
        "C-ISR-2, M6",
        Edit(
            "kraftwire.controller.isr:_update_error",
            "if epochs[1] < partition.partition_epoch:",
            "if False:",
        ),
        _WORLD,
    ),
    Mutant(
        "changes that see each other share a batch",
        "M1",
        Edit(
            "kraftwire.controller.batches:Batch._conflicts",
            "if after_partitions or (self._changes_brokers and partitions):",
            "if False:",
        ),
        _WORLD,
    ),
    Mutant(
        "what is due waits for an empty queue",
        "C-MOD-2",
        Edit(
            "kraftwire.node.controller:Controller._lead",
            "was_due = await self._run_due(epoch, tasks)",
            "was_due = not self._queue and await self._run_due(epoch, tasks)",
        ),
        "tests/unit/node/test_controller.py",
    ),
    Mutant(
        "a broker that is not unfenced yet loses its id to another process",
        "C-REG-8",
        Edit(
            "kraftwire.controller.sessions:Sessions.is_live",
            "return last is not None and",
            "return not broker.is_fenced and last is not None and",
        ),
        "tests/unit/controller/test_brokers.py",
    ),
    Mutant(
        "the last known leader need not be a replica",
        "C-PCB-5, M3",
        Edit(
            "kraftwire.controller.partition_changes:_PartitionChange._elected",
            "[replica for replica in last_known if replica in self._replicas]",
            "last_known",
        ),
        "tests/unit/controller/test_partition_changes.py",
    ),
    Mutant(
        "a replica leads from a directory that goes",
        "C-DIR-3, M5",
        Edit(
            "kraftwire.controller.brokers:_state_records",
            "topics.without_leader.difference(lost)",
            "topics.without_leader",
        ),
        "tests/unit/controller/test_brokers.py",
    ),
    Mutant(
        "another process of a broker is asked last",
        "C-REG-1",
        Edit(
            "kraftwire.controller.brokers:_registration_error",
            "if is_taken:",
            "if is_taken and not request.features:",
        ),
        "tests/unit/controller/test_brokers.py",
    ),
    Mutant(
        "a process that registers again has a new epoch",
        "C-REG-4",
        Edit(
            "kraftwire.controller.brokers:register_broker",
            "epoch = next_offset if known is None or is_new else known.epoch",
            "epoch = next_offset",
        ),
        "tests/unit/controller/test_brokers.py",
    ),
    Mutant(
        "a replica that was eligible is forgotten",
        "C-PCB-4",
        Edit(
            "kraftwire.controller.partition_changes:_PartitionChange._eligible",
            "[*(old.eligible_leader_replicas or ()), *old.isr]",
            "[*old.isr]",
        ),
        "tests/unit/controller/test_partition_changes.py",
    ),
    Mutant(
        "a leader of another epoch changes in-sync replicas",
        "C-ISR-2",
        Edit(
            "kraftwire.controller.isr:_update_error",
            "if epochs[0] < partition.leader_epoch:",
            "if False:",
        ),
        "tests/unit/controller/test_leadership.py",
    ),
    Mutant(
        "an ACL that is there is added again",
        "C-ACL-2",
        Edit(
            "kraftwire.controller.acls:create_acls",
            "acl not in created and not cluster.image.acls.has(acl)",
            "acl not in created",
        ),
        "tests/unit/controller/test_acls.py",
    ),
    Mutant(
        "a quota that stays the same is written",
        "C-CQ-2",
        Edit(
            "kraftwire.controller.quotas:_quota_records",
            "if value == cluster.image.quota(entity, key):",
            "if False:",
        ),
        "tests/unit/controller/test_quotas.py",
    ),
    Mutant(
        "a renewer does not renew a token",
        "C-TOK-3",
        Edit(
            "kraftwire.controller.tokens:_check_owner",
            "(token.owner, *token.renewers)",
            "(token.owner,)",
        ),
        "tests/unit/controller/test_tokens.py",
    ),
    Mutant(
        "a user keeps the change that came first",
        "C-SCR-1",
        Edit(
            "kraftwire.controller.scram:alter_credentials",
            "changes.pop(name, None) is not None",
            "changes.get(name) is not None",
        ),
        "tests/unit/controller/test_scram.py",
    ),
    Mutant(
        "a session of a group may be as short as its heartbeats",
        "C-CFG-10",
        Edit(
            "kraftwire.controller.group_configs:check_group",
            "effective[session] <= effective[heartbeat]",
            "effective[session] < effective[heartbeat]",
        ),
        "tests/unit/controller/test_other_configs.py",
    ),
    Mutant(
        "a cancelled reassignment may lose records",
        "C-REA-6",
        Edit(
            "kraftwire.controller.reassignment:_cancel_reassignment",
            "if not replicas or not (isr or is_unclean):",
            "if not replicas:",
        ),
        "tests/unit/controller/test_changes.py",
    ),
    Mutant(
        "a replica leaves and the leader epoch stays",
        "C-PCB-7",
        Edit(
            "kraftwire.controller.partition_changes:_PartitionChange.record",
            "if not has_leader and not _has_all(self._replicas, old.replicas):",
            "if False:",
        ),
        "tests/unit/controller/test_partition_changes.py",
    ),
    Mutant(
        "a reassignment ends with fewer in sync than planned",
        "C-REA-5",
        Edit(
            "kraftwire.controller.partition_changes:_PartitionChange._complete_reassignment",
            "len(self._adding) < len(self._removing)",
            "False",
        ),
        "tests/unit/controller/test_partition_changes.py",
    ),
    Mutant(
        "an earlier process of a broker reports",
        "C-ISR-2",
        Edit(
            "kraftwire.controller.isr:alter_partition",
            "broker is None or broker.epoch != request.broker_epoch",
            "broker is None",
        ),
        "tests/unit/controller/test_leadership.py",
    ),
    Mutant(
        "two are in sync while a leader recovers",
        "C-ISR-2",
        Edit(
            "kraftwire.controller.isr:_recovery_error",
            "(state == RECOVERING and len(isr) > 1)",
            "False",
        ),
        "tests/unit/controller/test_leadership.py",
    ),
    Mutant(
        "a partition that is named twice is elected twice",
        "C-ELE",
        Edit(
            "kraftwire.controller.elections:elect_leaders",
            "record is not None and key not in done",
            "record is not None",
        ),
        "tests/unit/controller/test_leadership.py",
    ),
    Mutant(
        "a heartbeat that loses all directories moves nothing",
        "C-DIR-3",
        Edit(
            "kraftwire.controller.brokers:_directory_records",
            "if cluster.level >= WITH_DIRECTORIES and offline:",
            "if cluster.level >= WITH_DIRECTORIES and offline and remaining:",
        ),
        "tests/unit/controller/test_leadership.py",
    ),
    Mutant(
        "a controller elected again renews no session",
        "C-HB-1",
        Edit(
            "kraftwire.node.controller:Controller._lead",
            "self._sessions.renew_all(self._image, quorum.now_ms())",
            "pass",
        ),
        "tests/unit/node/test_controller.py",
    ),
    Mutant(
        "anybody speaks for a pinned voter where there is no authorizer",
        "kraftwire.voter.principals",
        Edit(
            "kraftwire.node.authorization:Authorization.answer",
            "if pinned is not None:",
            "if pinned is not None and self._authorizer is not None:",
        ),
        "tests/unit/node/test_authorization.py",
    ),
    Mutant(
        "an impostor ends the epoch of a pinned leader",
        "kraftwire.voter.principals",
        Edit(
            "kraftwire.node.authorization:_claimed_replicas",
            '("Vote", "BeginQuorumEpoch", "EndQuorumEpoch")',
            '("Vote", "BeginQuorumEpoch")',
        ),
        "tests/unit/node/test_authorization.py",
    ),
    Mutant(
        "a controller that has moved does not register again",
        "C-CREG",
        Edit(
            "kraftwire.node.registration:Registration._is_controller_due",
            "image.controllers.get(own.id) != own",
            "own.id not in image.controllers",
        ),
        "tests/unit/node/test_registration.py",
    ),
    Mutant(
        "all SCRAM logins have one nonce",
        "SEC-S32",
        Edit(
            "kraftwire.node.logins:_maker",
            "nonce=secrets.token_urlsafe(24)",
            'nonce="the-same-for-all-of-these-logins"',
        ),
        "tests/hostile/test_user_names.py",
    ),
    Mutant(
        "decoys differ from node to node",
        "SEC-S33",
        Edit(
            "kraftwire.node.logins:_UsersOfLog.decoy_of",
            "self._own_secret if secret is None else secret.encode()",
            "self._own_secret",
        ),
        "tests/hostile/test_user_names.py",
    ),
    Mutant(
        "known users cost less than unknown ones",
        "SEC-S33",
        Edit(
            "kraftwire.security.scram:ScramServer._begin",
            "decoy = self._decoy_of(name, self.is_token)",
            "decoy = None if self._user else self._decoy_of(name, self.is_token)",
        ),
        "tests/hostile/test_user_names.py",
    ),
)
