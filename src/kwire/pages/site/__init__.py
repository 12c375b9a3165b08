"""The protocol site: message definitions as static pages. `kwire schema docs` writes it."""
