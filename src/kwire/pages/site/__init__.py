"""The site of a protocol: message definitions in, static pages out. `command` (kwire schema docs) starts it."""
