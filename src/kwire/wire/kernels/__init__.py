"""What the kernels of all packages share.

compiler      the decorators: which functions are compiled, and which Python calls
arrays        the array types in signatures
memory        loads, stores and copies at raw addresses
varints       varints at raw addresses
primitives    the instructions under memory: `intrinsics` for the compiler, `interpreted` for Python
"""
