"""Sphinx configuration; `make docs` builds with warnings as errors."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "devhost"
author = "The devhost developers"
project_copyright = "2026, The devhost developers"
release = version = installed_version("devhost")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "fault_table", "hooks"]
exclude_patterns = ["_build"]

myst_heading_anchors = 3  # a heading can be linked to by its text
autodoc_member_order = "bysource"
# Types are part of the signature; a plugin's author copies it from here.
autodoc_typehints = "signature"
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # a property documents itself once more as a member

html_theme = "furo"
html_title = f"devhost {release}"
html_static_path = ["_static"]
html_css_files = ["wrap.css"]
