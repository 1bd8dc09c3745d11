"""A persistent local document store whose documents expire."""
