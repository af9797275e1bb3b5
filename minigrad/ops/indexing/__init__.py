"""Reading and writing some of the elements."""
