"""Writes files so that each has either its earlier content or all of the new one, and never replaces what was read."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable


def check_output(name: str, path: str | os.PathLike, inputs: Iterable[str | os.PathLike] = ()) -> None:
    """Whether the file `path` of the argument `name` can be written, before hours of work rather than after them. Raises InputError if its folder does not
    exist, or if it is one of `inputs`, also through links."""
    from ._fomoe import InputError  # not there in the source tree, which says so itself

    file = pathlib.Path(path)
    if not file.absolute().parent.is_dir():
        raise InputError(f'{name}: got "{path}"; expected a file in an existing folder; for example {name}="result.json"')
    for read in inputs:
        if file.exists() and os.path.exists(read) and os.path.samefile(file, read):
            raise InputError(f'{name}: got "{path}", which is also read as an input; expected a file of its own, since it would be replaced; for example '
                             f'{name}="another-{file.name}"')


def write_whole(path: str | os.PathLike, text: str) -> None:
    """Writes under a temporary name beside `path`, and renames. Follows a symbolic link. Raises OSError, and then leaves nothing behind."""
    file = pathlib.Path(os.path.realpath(path))
    made = file.with_name(f"{file.name}.{os.getpid()}.partial")
    try:
        with open(made, "x") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        if file.exists():
            os.chmod(made, file.stat().st_mode & 0o7777)
        os.replace(made, file)
    except OSError:
        made.unlink(missing_ok=True)
        raise
