"""Settings of Sphinx for what `python -m docs.site` lays out. The theme is Furo: light and dark, and made for phones."""

from pathlib import Path

import minigrad

project = "minigrad"
author = "the authors of minigrad"
project_copyright = author
version = release = minigrad.__version__
extensions = ["myst_nb", "sphinx.ext.linkcode", "docs.site.extension"]
exclude_patterns = ["doctrees", "extra"]

html_theme = "furo"
html_title = "minigrad"
html_static_path = [str(Path(__file__).with_name("static"))]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_search_summary = False  # it fetches pages, which browsers refuse to pages that are read from a disk
smartquotes = False
html_math_renderer = "mathml"  # of docs.site.extension
toc_object_entries = False  # 1,800 names in the menu of every page would take minutes
python_maximum_signature_line_length = 100

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 6
myst_url_schemes = ["http", "https", "mailto", "source"]  # source:PATH is a file of the checkout
nb_execution_mode = "off"  # minigrad.learn has executed them
nb_merge_streams = True


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Where a public name is defined."""
    from docs.site.reference import place_of

    place = place_of(info["module"], info["fullname"])
    return f"source:{place[0]}#L-{place[1]}" if place else None
