"""Builds the optional engine in C with the package; without a compiler or headers it is omitted.

Hatchling calls the hook for every wheel and every editable installation. To find out why
the engine is missing, set KRAFTWIRE_ENGINE=required: the build then fails with the reason.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

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
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise RuntimeError("a free-threaded interpreter")
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
