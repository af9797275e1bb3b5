"""The site: guides, executed tutorials, models, results and the reference, as pages that need no network.

    python -m docs.site                    # writes build/site; open index.html there
    python -m docs.site --pages 'tutorials/1*' docs/training    # only these, in seconds
    python -m docs.site --check            # then checks all links, and walks through all pages with a browser

It needs the extra `docs`. `staging` lays the sources out as the checkout has them, Sphinx builds them with MyST-NB and the theme
Furo, and `extension` adds what Sphinx lacks: formulas without a script, and pages of source.

Why Furo: the same pages were built with the PyData theme, too, and looked at in light, in dark, and on a phone. Both fit, and find
the same. But a page loads 0.15 MB with Furo and 2.3 MB with PyData; PyData puts the tutorials into a bar above the text and leaves
the menu beside it empty, and it warns in the console of the page that is opened first.
"""
