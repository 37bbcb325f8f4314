"""RC2 in CBC mode, with which keytool and openssl encrypted the certificates of PKCS12 for decades.

No library here has it with the short keys of PKCS12. It protects nothing: it is only for reading.

Source: RFC 2268.
"""

from __future__ import annotations

import struct

_TABLE = bytes.fromhex(
    "d978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2"
    "179a59f587b34f1361456d8d09817d32bd8f40eb86b77b0bf09521225c6b4e82"
    "54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb626"
    "6fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7"
    "08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ec"
    "c2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731"
    "2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a9"
    "0d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad"
)
_BLOCK_BYTES = 8
_SHIFTS = (1, 2, 3, 5)
# Before these rounds, counted from the last one, the words are mashed.
_MASHED = (5, 11)


def decrypt_rc2(key: bytes, iv: bytes, data: bytes) -> bytes:
    """Decrypt whole blocks; every bit of the key counts. Raises: ValueError for another length."""
    if len(data) % _BLOCK_BYTES:
        raise ValueError("not a number of whole blocks")
    words = _expanded(key)
    out, before = bytearray(), iv
    for at in range(0, len(data), _BLOCK_BYTES):
        block = data[at : at + _BLOCK_BYTES]
        plain = _decrypted(words, block)
        out += bytes(a ^ b for a, b in zip(plain, before, strict=True))
        before = block
    return bytes(out)


def _expanded(key: bytes) -> tuple[int, ...]:
    long = bytearray(key)
    while len(long) < 128:
        long.append(_TABLE[(long[-1] + long[-len(key)]) & 0xFF])
    long[128 - len(key)] = _TABLE[long[128 - len(key)]]
    for at in range(127 - len(key), -1, -1):
        long[at] = _TABLE[long[at + 1] ^ long[at + len(key)]]
    return struct.unpack("<64H", long)


def _decrypted(key: tuple[int, ...], block: bytes) -> bytes:
    words = list(struct.unpack("<4H", block))
    for turn in range(16):
        if turn in _MASHED:
            for at in (3, 2, 1, 0):
                words[at] = words[at] - key[words[at - 1] & 63] & 0xFFFF
        for at in (3, 2, 1, 0):
            shift = _SHIFTS[at]
            word = (words[at] >> shift | words[at] << 16 - shift) & 0xFFFF
            word -= key[4 * (15 - turn) + at]
            word -= words[at - 1] & words[at - 2]
            words[at] = word - (~words[at - 1] & words[at - 3]) & 0xFFFF
    return struct.pack("<4H", *words)
