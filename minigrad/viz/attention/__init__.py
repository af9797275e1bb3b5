"""What a model attends to, and which tokens it finds likely."""
