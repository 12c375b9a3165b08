"""Options that the sources and sinks share: names, values, and what they select."""
