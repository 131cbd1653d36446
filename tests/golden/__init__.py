"""The answers of the package at a few fixed fits, kept in a file, and two commits side by side."""
