"""CRC-32C of batches, by the extension of the package `crc32c`.

Importing the package itself also loads `importlib.metadata`, for a tenth of the time in which the
command line starts; the extension alone does not.
"""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import find_spec, module_from_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = "_crc32c"


def _load() -> Callable[..., int]:
    package = find_spec("crc32c")
    for folder in (package and package.submodule_search_locations) or ():
        found = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec(_NAME)
        if found is not None and found.loader is not None:
            module = module_from_spec(found)
            found.loader.exec_module(module)
            function: Callable[..., int] = module.crc32c
            return function
    from crc32c import crc32c

    return crc32c


crc32c = _load()
