"""Along axes: sums, extremes, running sums, statistics, sorting, counting."""
