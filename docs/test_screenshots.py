"""The screenshots show what the commands print today; `make screenshots` draws them anew."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

STATIC = Path(__file__).parent / "_static"
spec = importlib.util.spec_from_file_location(
    "screenshots", Path(__file__).parent / "screenshots.py"
)
screenshots = importlib.util.module_from_spec(spec)
spec.loader.exec_module(screenshots)


def text_of(svg):
    """Return the words in an SVG, in order."""
    nodes = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return " ".join(node.text or "" for node in nodes).replace("\N{NO-BREAK SPACE}", " ").split()


@pytest.mark.parametrize("name", screenshots.SCREENSHOTS)
def test_is_current(name):
    committed = (STATIC / f"{name}.svg").read_text()
    assert text_of(committed) == text_of(screenshots.draw(name))
    assert "url(http" not in committed  # nothing is fetched to show it


def test_shows_colours_and_the_active_device():
    svg = (STATIC / "devhost-list.svg").read_text()
    words = " ".join(text_of(svg))
    assert "$ devhost list" in words
    assert "available (active)" in words
    colours = set(re.findall(r"-r\d+ \{ fill: (#\w+)", svg))
    assert len(colours) > 1
