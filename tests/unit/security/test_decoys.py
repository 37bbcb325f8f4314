"""Credentials for names that nobody has, beside those of users (SEC-S33)."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from kraftwire.security.credentials import SCRAM_SHA_256, SCRAM_SHA_512
from kraftwire.security.decoys import (
    SALT_RANDOM_BYTES,
    CredentialForm,
    Decoys,
    ScramIndex,
    salt_of,
)
from kraftwire.security.scram import ScramCredential

SECRET = b"the secret of the cluster"
TEXT = 0  # the length that stands for a salt of Kafka's tools
NAMES = [f"name-{number}" for number in range(2000)]


def index_of(*users: tuple[str, int, int]) -> ScramIndex:
    """Users by name, iterations and length of the salt."""
    index, random = ScramIndex(), Random(1)
    for name, iterations, length in users:
        index.put(name, 1, credential(random, iterations, length))
    return index


def credential(random: Random, iterations: int = 4096, length: int = TEXT) -> ScramCredential:
    """One whose password nobody knows."""
    salt = random.randbytes(length) if length else salt_of(random.randbytes(SALT_RANDOM_BYTES))
    return ScramCredential(salt, b"stored", b"server", iterations)


def shown(decoys: Decoys, name: str) -> tuple[bytes, int]:
    """What a first answer would show."""
    decoy = decoys.user(SCRAM_SHA_256, name)
    return decoy.salt, decoy.iterations


def test_a_salt_of_kafkas_tools() -> None:
    """130 bits in base 36, as Java's BigInteger writes them."""
    assert salt_of(bytes(SALT_RANDOM_BYTES)) == b"0"
    assert salt_of(bytes(16) + b"\x24") == b"10"
    # Bits above the 130th do not count.
    assert salt_of(b"\xff" * SALT_RANDOM_BYTES) == salt_of(b"\x03" + b"\xff" * 16)
    assert int(salt_of(b"\xff" * SALT_RANDOM_BYTES), 36) == 2**130 - 1


def test_decoys_have_the_salts_of_users() -> None:
    """Length, alphabet and first digit are distributed as in Kafka's own (26 digits begin by 1)."""
    random, decoys = Random(7), Decoys(SECRET)
    users = [salt_of(random.randbytes(SALT_RANDOM_BYTES)) for _ in NAMES]
    others = [decoys.user(SCRAM_SHA_256, name).salt for name in NAMES]
    for salts in (users, others):
        assert set(b"".join(salts)) == set(b"0123456789abcdefghijklmnopqrstuvwxyz")
        lengths = Counter(map(len, salts))
        assert 0.55 < lengths[25] / len(salts) < 0.62
        assert 0.36 < lengths[26] / len(salts) < 0.45
        assert {salt[:1] for salt in salts if len(salt) == 26} == {b"1"}
    assert len(set(others)) == len(NAMES)


def test_a_name_keeps_its_decoy() -> None:
    """It depends on the secret, the mechanism and the name, and on nothing of the process."""
    decoys = Decoys(SECRET)
    bob = decoys.user(SCRAM_SHA_256, "bob")
    assert bob == Decoys(SECRET).user(SCRAM_SHA_256, "bob")
    others = [
        decoys.user(SCRAM_SHA_512, "bob"),
        decoys.user(SCRAM_SHA_256, "bo"),
        decoys.token(SCRAM_SHA_256, "bob"),
        Decoys(b"another").user(SCRAM_SHA_256, "bob"),
    ]
    assert len({one.salt for one in (bob, *others)}) == 5
    assert (len(bob.stored_key), len(others[0].stored_key)) == (32, 64)
    assert SECRET.decode() not in repr(decoys)


@pytest.mark.parametrize("form", [(4096, TEXT), (8192, TEXT), (4096, 20), (16384, 64)])
def test_users_of_one_form_change_no_decoy(form: tuple[int, int]) -> None:
    """However many there are; all decoys have that form."""
    index, random = index_of(("alice", *form)), Random(3)
    before = {name: shown(Decoys(SECRET, index.forms(1)), name) for name in NAMES}
    assert {iterations for _, iterations in before.values()} == {form[0]}
    if form[1]:
        assert {len(salt) for salt, _ in before.values()} == {form[1]}
    for number in range(50):
        index.put(f"user-{number}", 1, credential(random, *form))
    assert index.forms(1) == {form: 51}
    for number in range(0, 50, 2):
        index.remove(f"user-{number}", 1)
    index.put("alice", 1, credential(random, *form))
    index.remove("nobody", 1)
    assert index.forms(1) == {form: 26}
    assert {name: shown(Decoys(SECRET, index.forms(1)), name) for name in NAMES} == before


def test_decoys_have_each_form_as_often_as_users() -> None:
    """A form that only users had would name them, one that is rare among them would name others."""
    users = [(f"a{n}", 4096, TEXT) for n in range(70)] + [(f"b{n}", 8192, 20) for n in range(30)]
    index = index_of(*users)
    before = {name: shown(Decoys(SECRET, index.forms(1)), name) for name in NAMES}
    few = [name for name in NAMES if before[name][1] == 8192]
    assert 0.26 < len(few) / len(NAMES) < 0.34
    assert {len(before[name][0]) for name in few} == {20}
    # One user more moves the border a little: those few names seem to have a new password.
    index.put("one more", 1, credential(Random(5)))
    after = {name: shown(Decoys(SECRET, index.forms(1)), name) for name in NAMES}
    moved = [name for name in NAMES if before[name] != after[name]]
    assert len(moved) / len(NAMES) < 0.01
    assert all(before[name][0] != after[name][0] for name in moved)


def test_a_mechanism_has_its_own_users() -> None:
    """Others do not count; the last user's removal leaves what Kafka's tools make."""
    index = index_of(("alice", 8192, 20))
    assert index.forms(2) == {}
    index.remove("alice", 2)
    assert index.forms(1) == {CredentialForm(8192, 20): 1}
    index.remove("alice", 1)
    assert index.forms(1) == {}
    assert shown(Decoys(SECRET, index.forms(1)), "bob") == shown(Decoys(SECRET), "bob")
    assert shown(Decoys(SECRET), "bob")[1] == 4096
