"""`kwire conformance`: a module a command."""
