"""Share groups (KIP-932) on the leader of a partition: which records are acquired, by whom and for how long."""
