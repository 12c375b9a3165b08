"""The interpreters of a plan, as compiled kernels.

messagepack       tokens of MessagePack, on top of kwire.wire.kernels
lengths           lengths, markers and packed integers of the wire
operands          names for the operands of a row
encode            MessagePack -> wire
walk              the walk over a message that flatten and nest share
flatten, nest     wire -> columns

`kwire/native/messages.c` reads objects.
"""
