"""Deprecated: the HTML pages are in `kwire.pages`."""
