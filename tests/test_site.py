"""The pages as a site: all of them are listed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import yaml

from conftest import ROOT


def listed(nav: Any) -> list[str]:
    """The pages of a nav, sections unfolded."""
    if isinstance(nav, str):
        return [nav]
    return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in listed(part)]


def test_every_page_is_listed_once():
    """That there is no other is what `make docs` checks, as it does the links."""
    pages = listed(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert len(pages) == len(set(pages))
    assert {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")} <= set(pages)


def test_the_api_page_names_what_there_is():
    """Each `::: name` of the page can be imported."""
    names = [
        line.removeprefix("::: ") for line in (ROOT / "docs" / "api.md").read_text().splitlines() if line[:4] == "::: "
    ]
    assert len(names) > 10
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name
