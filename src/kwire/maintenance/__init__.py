"""Work on whole log directories and copies of them.

adopt               metadata for directories that lost theirs
cluster_metadata    a metadata log for new directories
compaction          compact logs of a stopped broker, in place or into a copy
convert             write logs in another record format
export, restore     records to Parquet, Arrow or JSON lines, and back to a log directory
verify              find damage of logs
repair, reindex     take damage out of logs; write indexes and snapshots again
statistics          counts and sizes of topics, for reports
"""
