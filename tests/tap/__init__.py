"""Tests of kwire.tap."""
