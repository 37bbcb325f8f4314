"""What a wheel says of itself: versions, extras, license, addresses."""

from __future__ import annotations

import re
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import pytest

from hatch_build import readme_elsewhere
from tests.tidy.distributions import built_wheel
from tests.tidy.sources import ROOT


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return BytesParser().parsebytes(archive.read(name))


@pytest.mark.parametrize("address", ["", "https://host.example/who/kraftwire"])
@pytest.mark.parametrize("project", [".", "packages/sim"])
def test_every_link_of_the_long_description_has_a_host(
    project: str, address: str, tmp_path: Path
) -> None:
    """It is read where no file of the repository is; without an address, links are text."""
    built = built_wheel(tmp_path, ROOT / project, KRAFTWIRE_REPOSITORY=address, CC="false")
    metadata = _metadata(built)
    text = str(metadata.get_payload())
    assert text.startswith((ROOT / project / "README.md").read_text("utf-8")[:60])
    links = re.findall(r"\]\(([^)]*)\)|(?:src|href)=[\"']([^\"']*)", text)
    targets = {link for pair in links for link in pair} - {""}
    assert not {link for link in targets if not link.startswith(("https://", "#"))}
    urls = dict(value.split(", ") for value in metadata.get_all("Project-URL", []))
    assert all(url.startswith(address) for url in urls.values())
    labels = {"Repository", "Documentation", "Changelog", "Issues", "Security"}
    assert set(urls) == (labels if address else set())


def test_links_lead_to_the_tagged_files() -> None:
    """Pages and pictures have addresses of different forms."""
    text = "[a](docs/x.md#y), [b](../../LICENSE), ![c](p.png), [d](https://e.f/), [g](#h), `[i](j)`"
    assert readme_elsewhere(text, "packages/sim", "https://host.example/%s/v1") == (
        "[a](https://host.example/blob/v1/packages/sim/docs/x.md#y), "
        "[b](https://host.example/blob/v1/LICENSE), "
        "![c](https://host.example/raw/v1/packages/sim/p.png), [d](https://e.f/), [g](#h), "
        "`[i](https://host.example/blob/v1/packages/sim/j)`"
    )
    assert readme_elsewhere(text, ".", "") == "a, b, c, [d](https://e.f/), [g](#h), `i`"


def test_supported_versions_and_extras_are_named(tmp_path: Path) -> None:
    """Package indexes and people filter by them."""
    metadata = _metadata(built_wheel(tmp_path, ROOT, CC="false"))
    classifiers = metadata.get_all("Classifier", [])
    named = [each.rpartition(" ")[2] for each in classifiers if "Python :: 3." in each]
    workflow = (ROOT / ".github" / "workflows" / "quick.yml").read_text("utf-8")
    tested = re.search(r"python: \[(.*)\]", workflow)
    assert tested is not None
    assert named == re.findall(r'"([\d.]+)"', tested[1])
    assert {"Framework :: Pytest", "Typing :: Typed"} <= set(classifiers)
    required = [each.partition(";") for each in metadata.get_all("Requires-Dist", [])]
    of_extra = {
        extra: {re.split(r"[<>=[]", name)[0] for name, _, when in required if f"'{extra}'" in when}
        for extra in metadata.get_all("Provides-Extra", [])
    }
    assert of_extra["testing"] == set()
    assert of_extra["report"] == {"pyarrow", "numpy", "bokeh"}
    assert of_extra["spark"] == of_extra["report"] | {"pyspark"}


def test_the_metadata_names_the_license_and_the_wheel_carries_it(tmp_path: Path) -> None:
    """Tools read the SPDX expression; the text itself belongs in separate files."""
    with zipfile.ZipFile(built_wheel(tmp_path, ROOT, CC="false")) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" in name]
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        head, _, _ = archive.read(metadata).decode().partition("\n\n")
    assert "License-Expression: Apache-2.0" in head.splitlines()
    assert not [line for line in head.splitlines() if line.startswith("License: ")]
    assert "TERMS AND CONDITIONS" not in head
    assert {name.rpartition("/")[2] for name in names} >= {"LICENSE", "NOTICE"}
