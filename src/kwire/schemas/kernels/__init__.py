"""Compiled loops that decode values of registered schemas."""
