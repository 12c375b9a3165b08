"""Steps of handlers that several APIs share. Like handlers, they get the node."""
