"""The features that this software supports.

Source: R-SRV-3.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["KRAFT_VERSION", "SUPPORTED_FEATURES"]

KRAFT_VERSION = "kraft.version"

# Lowest and highest level by name.
SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = {
    KRAFT_VERSION: (0, 1),
    "metadata.version": (7, 30),
}
