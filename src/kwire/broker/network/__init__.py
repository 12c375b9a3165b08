"""Listeners and connections: sockets, turns of requests, memory, limits."""
