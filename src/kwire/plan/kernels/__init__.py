"""The interpreters of a plan, as compiled kernels.

memory                          varints and MessagePack tokens, on top of kwire.wire.kernels
operands                        where the operands of a row and the fields of a frame are
decode, encode                  wire -> MessagePack, MessagePack -> wire
walk                            the walk over a message that flatten and nest share
flatten, nest                   wire -> columns
"""
