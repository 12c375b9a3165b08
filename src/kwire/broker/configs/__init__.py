"""Configs: definitions, checks, given at start, stored, changed by requests."""
