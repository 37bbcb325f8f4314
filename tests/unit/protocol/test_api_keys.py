"""The numbers of APIs, compared with the schemas."""

from __future__ import annotations

from kraftwire import messages
from kraftwire.protocol.api_keys import ApiKey


def test_every_number_is_that_of_its_schema() -> None:
    """A wrong number would single out the frames of another API."""
    named = {name: key for name, key in vars(ApiKey).items() if name.isupper()}
    schemas = {_upper(name): key for key, name in messages.API_NAMES.items()}
    assert named == {name: schemas[name] for name in named}


def _upper(name: str) -> str:
    """``DescribeQuorum`` as ``DESCRIBE_QUORUM``."""
    return "".join(f"_{char}" if char.isupper() else char.upper() for char in name).lstrip("_")
