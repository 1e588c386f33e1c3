"""``tracescope [FILE…]``: opens the window."""

from pathlib import Path

import click


@click.command(name="window", hidden=True)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--fresh", is_flag=True, help="Ignore the saved layout of the window.")
@click.option("--ranks", is_flag=True, help="The files are ranks of one run: show them as one trace.")
def window(files: tuple[Path, ...], fresh: bool, ranks: bool) -> int:
    """Open the window with FILES."""
    from tracescope.ui.app import run_app

    return run_app(files, fresh, ranks=ranks)
