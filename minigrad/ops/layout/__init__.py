"""Where elements stand: shapes, joining, padding, diagonals, windows."""
