"""The pages of the documentation site: hooks that `mkdocs.yml` names.

Every Markdown file of the project becomes a page at its own path, so that links between them work
as they do in a checkout. Links to source files become plain text.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

_PAGES = ("*.md", "docs/*.png", "docs/*.css")
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)]*)?\)")

# Tab -> pages, or groups of pages; a folder stands for its README, a pattern for several of them.
_NAVIGATION: dict[str, dict[str, tuple[str, ...]]] = {
    "Use it": {
        "Begin": ("README.md", "docs", "docs/coming-from.md", "examples"),
        "Read and find out": (
            "docs/decode.md",
            "docs/findings.md",
            "docs/stories.md",
            "docs/stats.md",
            "docs/metadata.md",
        ),
        "Make tables": ("docs/pipeline.md", "docs/spark-sources.md", "docs/pipeline-scale.md"),
        "Run quorums": ("docs/nodes.md", "docs/recover.md", "examples/kv"),
        "Security": (
            "docs/secured-clusters.md",
            "docs/plaintext-to-sasl-ssl.md",
            "docs/security.md",
            "examples/secured",
        ),
        "Test and program": (
            "docs/tests.md",
            "docs/proxy.md",
            "docs/control.md",
            "docs/client-errors.md",
            "docs/client.md",
            "docs/messages.md",
        ),
    },
    "Reference": {"": ("docs/public.md", "docs/reference.md", "CHANGELOG.md", "SECURITY.md")},
    "How it works": {
        "Packages": ("kraftwire", "kraftwire/*", "packages/*", "schemas", "codegen"),
        "Rules": (
            "docs/rules.md",
            "docs/controller-rules.md",
            "docs/security-rules.md",
            "docs/invariants.md",
            "docs/engine.md",
        ),
    },
    "Decisions": {"": ("docs/adr", "docs/adr/*.md")},
    "Contribute": {"": ("CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "tests", "tests/*", "tools")},
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Order the pages, each of them once, at its first place."""
    seen: set[str] = set()
    config.nav = []
    for tab, groups in _NAVIGATION.items():
        entries: list[str | dict[str, list[str]]] = []
        for title, patterns in groups.items():
            pages = [page for pattern in patterns for page in _matching(pattern)]
            fresh = [page for page in dict.fromkeys(pages) if page not in seen]
            seen.update(fresh)
            entries += [{title: fresh}] if title else fresh
        config.nav.append({tab: entries})
    return config


def _matching(pattern: str) -> list[str]:
    found = sorted(ROOT.glob(pattern))
    pages = [path / "README.md" if path.is_dir() else path for path in found]
    return [
        path.relative_to(ROOT).as_posix()
        for path in pages
        if path.suffix == ".md" and path.is_file()
    ]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the project's own files in place of those in the folder that mkdocs looked at."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *_PAGES],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    of_theme = [file for file in files if file.src_dir != config.docs_dir]
    own = [
        File(name, str(ROOT), config.site_dir, config.use_directory_urls)
        for name in listed.stdout.splitlines()
        if not name.startswith(".") and (ROOT / name).is_file()
    ]
    return Files([*of_theme, *own])


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links lead to pages, or nowhere."""
    folder = (ROOT / page.file.src_uri).parent

    def linked(match: re.Match[str]) -> str:
        target = match["target"]
        if "://" in target or target.endswith((".md", ".png")):
            return match[0]
        if (folder / target / "README.md").is_file():
            return f"[{match['text']}]({target.rstrip('/')}/README.md{match['anchor'] or ''})"
        return match["text"]

    return _LINK.sub(linked, markdown)
