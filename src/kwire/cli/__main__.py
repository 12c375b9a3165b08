"""The `kwire` command, also as `python -m kwire` where the script is not on the PATH.

Imports nothing of kwire before Ctrl-C is handled: a command loads for a few hundred milliseconds.
"""

import gc
import signal
import sys

__all__ = ["main"]


class _WithoutPandas:
    """Keeps pandas from being imported, which no command uses.

    PyArrow imports it where it is installed, to recognize its objects: a quarter of what `kwire sql` takes to start.
    """

    @staticmethod
    def find_spec(name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("kwire's commands run without pandas", name=name)


def main() -> None:
    """Run the `kwire` command and exit.

    Outside of a command's own work Ctrl-C ends the process as it ends a program in C, without a traceback: see
    kwire.cli.command. A process that ignores it, as in the background of a script, goes on to.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.meta_path.insert(0, _WithoutPandas)
    gc.disable()  # what modules make while they load is kept; kwire.cli.command enables it
    from kwire.extras import MissingExtra, needing

    try:
        with needing("kwire"):
            from kwire.cli.main import run
            from kwire.cli.terminal import show_python_warnings
    except MissingExtra as missing:
        print(missing, file=sys.stderr)
        sys.exit(2)  # kwire.cli.command.USAGE, which needs typer
    show_python_warnings()
    sys.exit(run())


if __name__ == "__main__":
    main()
