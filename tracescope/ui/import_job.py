"""Imports a foreign file by running our own command line in a child process: a hostile file cannot take the window
down, frames stay smooth, and cancelling is a kill."""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

from tracescope.core.errors import TraceError
from tracescope.ui.import_cache import cache_folder, cached_path, touch, trim

EXIT_LOSSES = 3


class ImportJob(QObject):
    """One import into the cache. Emits exactly one of ``imported`` (the native file's path) and ``failed``.

    After :meth:`cancel` nothing is emitted and no process is left.
    """

    progressed = Signal(object, object)
    """Done and total, in the importer's own unit (bytes)."""
    imported = Signal(object)
    failed = Signal(object)

    def __init__(
        self, source: Path, options: Sequence[str], parent: QObject | None = None, others: Sequence[Path] = ()
    ) -> None:
        super().__init__(parent)
        self.source = source
        self.others = tuple(others)
        """Further ranks of the same run."""
        self.options = tuple(options)
        self._target = cache_folder()
        self.from_cache = False
        """Whether the result was there already."""
        self._process: QProcess | None = None
        self._errors: list[str] = []
        self._line = b""

    def start(self) -> None:
        """Begin, or emit ``imported`` at once where the cache still holds the result."""
        try:
            self._target = cached_path(self.source, self.options, self.others)
            if self._target.exists():
                touch(self._target)
                self.from_cache = True
                self.imported.emit(self._target)
                return
            self._target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.failed.emit(TraceError(f"{self.source.name}: {error.strerror}.", action="Check the path."))
            return
        process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONUNBUFFERED", "1")
        environment.insert("TRACESCOPE_WINDOW", "1")  # the import leaves the window a core
        process.setProcessEnvironment(environment)
        process.readyReadStandardError.connect(self._read_progress)
        process.finished.connect(self._finish)
        process.errorOccurred.connect(self._not_started)
        self._process = process
        sources = [str(path) for path in (self.source, *self.others)]
        words = ["-m", "tracescope", "import", *sources, "-o", str(self._target), "--progress", "json"]
        process.start(sys.executable, [*words, *self.options])

    def cancel(self) -> None:
        """Kill the child, wait for its end, and remove what it had written."""
        process, self._process = self._process, None
        if process is None:
            return
        process.blockSignals(True)
        process.kill()
        process.waitForFinished(2000)
        self._remove_parts()

    @property
    def running(self) -> bool:
        """Whether the child is alive."""
        return self._process is not None

    def _remove_parts(self) -> None:
        for part in self._target.parent.glob(self._target.name + "*"):
            if part != self._target:
                part.unlink(missing_ok=True)

    def _read_progress(self) -> None:
        process = self._process
        if process is None:
            return
        self._line += bytes(process.readAllStandardError().data())
        *lines, self._line = self._line.split(b"\n")
        for line in lines:
            self._take_line(line.strip())

    def _take_line(self, line: bytes) -> None:
        if not line:
            return
        try:
            fields = msgspec.json.decode(line) if line.startswith(b"{") else None
        except msgspec.DecodeError:
            fields = None
        if isinstance(fields, dict) and "done" in fields:
            self.progressed.emit(fields["done"], fields.get("total", 0))
        elif fields is None:
            self._errors = [*self._errors, line.decode("utf-8", "replace")][-3:]

    def _not_started(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._process = None
            self.failed.emit(TraceError("The importer could not be started.", action="Check the installation."))

    def _finish(self, code: int, status: QProcess.ExitStatus) -> None:
        self._read_progress()
        self._take_line(self._line.strip())
        self._process = None
        if status == QProcess.ExitStatus.NormalExit and code in (0, EXIT_LOSSES) and self._target.exists():
            trim(self._target.parent, keep=self._target)
            self.imported.emit(self._target)
            return
        self._remove_parts()
        crashed = status != QProcess.ExitStatus.NormalExit
        if crashed or not self._errors or any("Traceback" in line for line in self._errors):
            ended = "stopped unexpectedly" if crashed else f"ended with code {code}"
            self.failed.emit(TraceError(f"{self.source.name}: the importer {ended}."))
            return
        what, *rest = self._errors
        self.failed.emit(TraceError(what, action=" ".join(rest)))
