"""State of a cluster by its admin APIs, in the classes that hold the content of internal topics.

For accounts that may not read the internal topics, and for the metadata of a cluster, which no client may read.
"""
