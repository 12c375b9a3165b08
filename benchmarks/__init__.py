"""Benchmarks, laid out as the packages are. A line a figure: name value unit ratio peer."""
