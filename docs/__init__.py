"""What makes the documents: the site (`python -m docs.site`), the pictures of the README and of the architecture, and the table of coverage."""
