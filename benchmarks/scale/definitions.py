"""How does the work with message definitions grow with their number?"""

from __future__ import annotations

from benchmarks.processes import grow

SCALE = True
SIZES = (1, 10, 100, 200)
ENCODE = """
import sys
from kwire.messages import registry
for name in registry.names()[: int(sys.argv[1])]:
    cls = registry.get(name)
    for version in cls.VALID_VERSIONS:
        cls().encoded_size(version=version)
"""


def main() -> None:
    """Print the figures."""
    grow("first-use-all-versions", "messages", SIZES, ENCODE, str, start="from kwire.messages import registry")


if __name__ == "__main__":
    main()
