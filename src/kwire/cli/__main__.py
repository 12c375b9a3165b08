"""`python -m kwire.cli`: the `kwire` command where the script is not on the PATH."""

from kwire.cli.main import main

main()
