"""How fast the store is, as ratios to what else could be used, in one run on one machine."""
