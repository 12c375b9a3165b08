"""What the admin APIs of a cluster tell, as the states that kwire makes of internal topics.

For accounts that may not read the internal topics, and for the metadata of a cluster, which no client may read.
"""
