"""Demos of the notebooks, cut out and served to a browser."""
