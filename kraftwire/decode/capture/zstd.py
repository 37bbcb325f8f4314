"""Zstandard as a stream."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import threading
from typing import IO

__all__ = ["ZstdPipe"]

# How the library says that its input ends too early.
_CUT = "incomplete frame"


class ZstdPipe:
    """Zstandard as a stream: the library unpacks from file to file only, so the target is a pipe.

    The packed bytes are copied to a temporary file, because the library opens its input for
    writing as well, which captures do not always allow and which would keep a pipe from ending.
    """

    def __init__(self, packed: io.RawIOBase) -> None:
        self._errors: list[str] = []
        copy = tempfile.TemporaryFile()  # noqa: SIM115 (the thread closes it)
        shutil.copyfileobj(packed, copy)
        copy.seek(0)
        self._output, target = os.pipe()
        # The thread knows nothing of this object: else it would keep alive what it waits for.
        arguments = (copy, target, self._errors)
        threading.Thread(target=_unpack, args=arguments, daemon=True).start()

    def read(self, size: int) -> bytes:
        """The next unpacked bytes. Raises: EOFError where the input is cut off, OSError where it is
        damaged.
        """
        data = os.read(self._output, size)
        if not data and self._errors:
            text = self._errors[0]
            raise EOFError(text) if _CUT in text else OSError(text)
        return data

    def close(self) -> None:
        """Stop reading; the thread then fails to write and ends."""
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    def __del__(self) -> None:
        self.close()


def _unpack(packed: IO[bytes], target: int, errors: list[str]) -> None:
    import cramjam

    try:
        with packed:
            cramjam.zstd.decompress_into(
                cramjam.File(f"/dev/fd/{packed.fileno()}"),
                cramjam.File(f"/dev/fd/{target}", read=False, write=True, truncate=False),
            )
    except (cramjam.DecompressionError, OSError) as error:
        errors.append(str(error))
    finally:
        os.close(target)
