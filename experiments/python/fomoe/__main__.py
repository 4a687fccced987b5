"""The command `fomoe`, and `python -m fomoe`: becomes the program that is installed with the package."""

from __future__ import annotations

import os
import pathlib
import signal
import sys

PROGRAM = pathlib.Path(__file__).parent / "bin" / "fomoe"


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the program would inherit that: fomoe … | head
    os.execv(PROGRAM, ["fomoe", *sys.argv[1:]])


if __name__ == "__main__":
    main()
