"""The `kwire` command as `python -m kwire`, for environments whose scripts are not on the PATH."""

from kwire.cli.__main__ import main

if __name__ == "__main__":
    main()
