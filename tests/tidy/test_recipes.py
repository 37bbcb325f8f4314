"""The recipes of CONTRIBUTING.md work as they are written: each is carried out in a copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy.recipes import Recipe, apply, copy_project, recipes, run

RECIPES = recipes()


def test_the_page_has_recipes() -> None:
    """The ten changes that people make most often."""
    assert len(RECIPES) == 10


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_a_recipe_leads_to_its_end(recipe: Recipe, tmp_path: Path) -> None:
    """A contributor who follows it touches what it names, and nothing else is missing."""
    if any("kraftwire.spark" in body for _, body in recipe.blocks):
        pytest.importorskip("pyarrow", reason="needs the extra spark")
    copy_project(tmp_path)
    for kind, body in recipe.blocks:
        if kind == "diff":
            apply(body, tmp_path)
        else:
            run(body, tmp_path)


def test_an_edit_that_fits_nowhere_is_an_error(tmp_path: Path) -> None:
    """A recipe must not pass because its edits did nothing."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    apply("--- a/a.txt\n+++ b/a.txt\n@@\n one\n-two\n+three\n", tmp_path)
    assert (tmp_path / "a.txt").read_text() == "one\nthree\n"
    with pytest.raises(AssertionError, match="0 times"):
        apply("--- a/a.txt\n+++ b/a.txt\n@@\n-two\n+three\n", tmp_path)
    apply("--- /dev/null\n+++ b/b.txt\n@@\n+new\n", tmp_path)
    assert (tmp_path / "b.txt").read_text() == "new\n"
