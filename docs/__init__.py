"""What makes the documents: the reference (`python -m docs.reference`) and the picture of the architecture."""
