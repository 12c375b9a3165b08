"""The column readers of a plan, as compiled kernels.

lengths           lengths, markers and packed integers of the wire
operands          names for the operands of a row
walk              the walk over a message that flatten and nest share
flatten, nest     wire -> columns

`kwire/native/messages.c` and `messages_writing.c` read and write objects.
"""
