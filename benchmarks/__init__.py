"""Benchmarks in the layout of the packages. Each prints a line per figure: name value unit ratio peer."""
