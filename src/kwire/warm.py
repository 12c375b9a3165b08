"""`python -m kwire.warm`: nothing to do since kwire's wheels contain compiled code. Will be removed in 0.3."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Print that there is nothing to compile."""
    print("kwire.warm: nothing to do, the kernels are compiled in the wheel; this command will be removed")


if __name__ == "__main__":
    main()
