"""One command for each page of numbers."""
