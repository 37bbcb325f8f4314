"""The engine is optional where the package is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hatch_build
from hatch_build import EngineHook


class _App:
    """The hook's output for people."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def display_warning(self, text: str) -> None:
        """Keep a line."""
        self.said.append(text)


def _no_compiler(*_: object) -> Path:
    raise RuntimeError("command 'cc' failed: there is no such program")


def _hook(folder: Path, app: _App) -> EngineHook:
    given: Any = (str(folder), {}, None, None, str(folder), "wheel", app)
    return EngineHook(*given)


def test_without_a_compiler_the_package_is_built_without_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container without a compiler gets everything but the engine, and one line that says so."""
    monkeypatch.delenv("KRAFTWIRE_ENGINE", raising=False)
    monkeypatch.setattr(hatch_build, "compile_engine", _no_compiler)
    app, data = _App(), {"force_include": {}}
    hook = _hook(tmp_path, app)
    hook.initialize("standard", data)
    hook.finalize("standard", data, "")
    assert data == {"force_include": {}}, "the wheel is one for all interpreters"
    (line,) = app.said
    assert line.startswith("engine: Python")
    assert "there is no such program" in line


def test_a_required_engine_is_built_or_the_reason_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recipe for wheels must not publish one without the engine by mistake."""
    monkeypatch.setenv("KRAFTWIRE_ENGINE", "required")
    monkeypatch.setattr(hatch_build, "compile_engine", _no_compiler)
    with pytest.raises(RuntimeError, match="there is no such program"):
        _hook(tmp_path, _App()).initialize("standard", {"force_include": {}})


@pytest.mark.parametrize("version", ["standard", "editable"])
def test_what_was_compiled_goes_where_it_is_looked_for(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes into the wheel, or next to the sources that an editable installation runs."""
    (tmp_path / hatch_build.PACKAGE).mkdir(parents=True)

    def compiled(_: Path, folder: Path) -> Path:
        path = folder / "_core.so"
        path.write_bytes(b"machine code")
        return path

    monkeypatch.setattr(hatch_build, "compile_engine", compiled)
    data: dict[str, Any] = {"force_include": {}}
    hook = _hook(tmp_path, _App())
    hook.initialize(version, data)
    hook.finalize(version, data, "")
    assert data["infer_tag"]
    assert data["pure_python"] is False
    is_in_place = (tmp_path / hatch_build.PACKAGE / "_core.so").exists()
    assert is_in_place == (version == "editable")
    included = list(data["force_include"].values())
    assert included == ([] if version == "editable" else ["kraftwire/engine/_core.so"])


def test_interpreters_that_the_engine_is_not_made_for_stay_with_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyPy has no slots to write into."""
    monkeypatch.setattr("platform.python_implementation", lambda: "PyPy")
    with pytest.raises(RuntimeError, match="PyPy is not CPython"):
        hatch_build.compile_engine(tmp_path, tmp_path)
