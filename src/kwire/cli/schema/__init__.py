"""`kwire schema`: message definitions, checked, shown, compared and compiled. One module a command."""
