"""What a build does besides collecting files: the optional engine in C, and addresses.

Hatchling calls the hooks for every wheel and every editable installation. Without a compiler or
headers the engine is omitted. To find out why, set KRAFTWIRE_ENGINE=required: the build then fails
with the reason.

The project's address is stated by KRAFTWIRE_REPOSITORY alone, which the release workflow sets to
the repository that it runs in. Without it, the metadata has no addresses, and links of the README
to other files are plain text.
"""

from __future__ import annotations

import os
import platform
import posixpath
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGE = "kraftwire/engine"
FLAGS = ("-O3", "-std=c11", "-fvisibility=hidden")


class EngineHook(BuildHookInterface[Any]):
    """Adds the compiled module to the wheel, or puts it into the checkout for an editable one."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before the files are collected."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        self._folder = Path(tempfile.mkdtemp(prefix="kraftwire-engine-"))
        try:
            module = compile_engine(root, self._folder)
        except Exception as error:
            if os.environ.get("KRAFTWIRE_ENGINE") == "required":
                raise
            self.app.display_warning(f"engine: Python (the engine in C was not built: {error})")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if version == "editable":
            # Do not overwrite the old one, which a running program may have mapped.
            fresh = root / PACKAGE / f"{module.name}.new"
            shutil.copy(module, fresh)
            fresh.replace(root / PACKAGE / module.name)
        else:
            build_data["force_include"][str(module)] = f"{PACKAGE}/{module.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built."""
        del version, build_data, artifact_path
        folder = getattr(self, "_folder", None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def compile_engine(root: Path, folder: Path, flags: tuple[str, ...] = FLAGS) -> Path:
    """Compile and link the C module into a folder; returns its path.

    Raises: RuntimeError on an interpreter that the engine is not made for; what the compiler's
    driver raises.
    """
    if platform.python_implementation() != "CPython":
        raise RuntimeError(f"{platform.python_implementation()} is not CPython")
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    sources = sorted(str(path.relative_to(root)) for path in (root / PACKAGE).glob("*.c"))
    is_unix = sys.platform != "win32"
    extension = Extension(
        "kraftwire.engine._core",
        sources,
        include_dirs=[PACKAGE],
        extra_compile_args=list(flags) if is_unix else [],
        extra_link_args=[flag for flag in flags if flag.startswith("-fsanitize")],
    )
    command = build_ext(Distribution({"name": "kraftwire", "ext_modules": [extension]}))
    command.build_lib = str(folder / "lib")
    command.build_temp = str(folder / "objects")
    before = Path.cwd()
    os.chdir(root)
    try:
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(before)
    name: str = command.get_ext_filename(extension.name)
    return folder / "lib" / name


class AddressHook(MetadataHookInterface):
    """The addresses of the project, and its README as it reads elsewhere than in the repository."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields that pyproject.toml lists as dynamic."""
        repository = os.environ.get("KRAFTWIRE_REPOSITORY", "").rstrip("/")
        tag = f"v{metadata['version']}"
        folder = Path(os.path.relpath(self.root, Path(__file__).parent)).as_posix()
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = readme_elsewhere(readme, folder, repository and f"{repository}/%s/{tag}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = {}
        if repository:
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/blob/{tag}/docs/README.md",
                "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
                "Security": f"{repository}/security/advisories/new",
            }


# An image or a link whose target is neither an address nor a place in the same text.
_LINK = re.compile(r"(!?)\[([^][]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def readme_elsewhere(text: str, folder: str, base: str) -> str:
    """Replace relative links of a README in a folder by absolute ones, or by their text.

    `base` has `%s` where GitHub has `blob` for pages and `raw` for bytes. If it is empty, links
    lose their targets.
    """

    def replaced(link: re.Match[str]) -> str:
        mark, label, target = link.groups()
        if not base:
            return label
        path = posixpath.normpath(posixpath.join(folder, target))
        return f"{mark}[{label}]({base % ('raw' if mark else 'blob')}/{path})"

    return _LINK.sub(replaced, text)
