"""``tracescope [FILE…]``: opens the window."""

import signal
import threading
from pathlib import Path

import click

from tracescope.core.errors import TraceError, printable


@click.command(name="window", hidden=True)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--fresh", is_flag=True, help="Ignore the saved layout of the window.")
@click.option("--ranks", is_flag=True, help="The files are ranks of one run: show them as one trace.")
def window(files: tuple[Path, ...], fresh: bool, ranks: bool) -> int:
    """Open the window with FILES."""
    from tracescope.ui.startup import check_display, run_app
    from tracescope.view.arrival import one_at_a_time

    try:
        check_display(files[0] if files else None)
    except TraceError:
        # The window says itself what is wrong with a file; where there is none, a wrong name is what to hear first.
        missing = next((file for file in files if not file.exists()), None)
        if missing is not None:
            raise TraceError(f"{missing}: there is no such file") from None
        raise

    if len(files) > 1 and not ranks:
        said = f"{one_at_a_time(files[0].name, files[1:])} A button in the window opens the next; --ranks merges ranks."
        click.echo(printable(f"tracescope: {said}"), err=True)
    # An exception of ours inside a slot of Qt would be taken for a fault.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return run_app(files, fresh, ranks=ranks)
