"""Capacity, bandwidth and dependence of the current step, each with its own bar and its arithmetic."""

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from tracescope.analysis.constraints import ThreeConstraints
from tracescope.core.units import MISSING, count, millis, one_of_ranks, percent, plural, rate, short_source, size
from tracescope.synth.latency import NOT_IN_FLOOR, TITLE, Latency
from tracescope.ui.fonts import text_width
from tracescope.ui.messages import plain_tooltip
from tracescope.ui.paint.canvas import RIGHT, Canvas, Style
from tracescope.ui.paint.hatch import INK, STATIC
from tracescope.ui.panels.inspection_layout import PAD
from tracescope.ui.panels.panel import NO_STEPS, PanelWidget
from tracescope.ui.session import Session
from tracescope.ui.theme import LIGHT, Theme
from tracescope.view.picture_words import wrapped
from tracescope.view.step_latency import latency_of_step

_LINE = 15
_MOST_CHIPS = 16
_OUTPUT_TOKENS = 128
"""Requests/s need a length: the answers are taken to be this many tokens, and the line says so."""

Lines = tuple[str, ...]


def capacity_lines(shown: ThreeConstraints) -> tuple[str, Lines]:
    """What is used of what there is, and the terms of it."""
    memory = shown.capacity
    if memory is None:
        return MISSING, (f"unknown without {_listed(shown.missing, 'model', 'machine', 'batch and context')}",)
    used = memory.stored_bytes + memory.kv_stored_bytes
    terms = [f"weights {size(memory.stored_bytes)} · KV {size(memory.kv_stored_bytes)}"]
    terms[0] += f" · reserve {size(memory.reserve_bytes)}"
    blocks = f"KV blocks {count(memory.blocks_used)} of {count(memory.blocks_total)} ({size(memory.block_bytes)} each)"
    room = "" if memory.fits else ": does not fit"
    ranks = 1 if shown.workload is None else shown.workload.tensor_parallel
    whose = (f"on {one_of_ranks(ranks)}",) if ranks > 1 else ()
    return f"{size(used)} of {size(memory.capacity_bytes)}{room}", (*terms, blocks, *whose)


def bandwidth_lines(shown: ThreeConstraints) -> tuple[str, Lines]:
    """MBU, and the division it comes from."""
    memory = shown.memory
    if memory.mbu is None:
        why = "some bytes are unknown" if memory.streamed_bytes < 0 else "unknown without a bandwidth"
        moved = size(memory.streamed_bytes) if memory.streamed_bytes >= 0 else MISSING
        return f"MBU {MISSING}", (f"{moved} in {millis(memory.duration_ns)} ms: {why}",)
    achieved = rate(memory.achieved_bytes_per_s).removesuffix(" TB/s")
    text = f"{size(memory.streamed_bytes)} ÷ {millis(memory.duration_ns)} ms = {achieved} of "
    return f"MBU {percent(memory.mbu, 1)}", (
        f"{text}{rate(memory.bandwidth_bytes_per_s)} ({short_source(memory.bandwidth_source)})",
    )


def latency_lines(latency: Latency | None) -> Lines:
    """What all-reduces take however little they send, which is in no floor; nothing without any."""
    if latency is None:
        return ()
    return f"{TITLE}: {latency.product} = {latency.added}", f"{NOT_IN_FLOOR}; {latency.source}"


def dependence_lines(shown: ThreeConstraints, latency: Latency | None = None) -> tuple[str, Lines]:
    """Operations in series, and the rates that follow from waiting for them."""
    d = shown.dependence
    head = f"{plural(d.ops_in_series, 'op')} in series"
    if d.tokens_per_s is None:
        waits = f"generated tokens unknown; one token waits {millis(d.duration_ns)} ms"
        return head, (waits, *latency_lines(latency))
    each = d.generated_tokens // d.batch if d.batch > 0 else 0
    accepted = "all accepted" if d.acceptance is not None else "acceptance unknown"
    product = f"{count(d.batch)} req × {count(each)} tok ÷ {millis(d.duration_ns)} ms"
    lines = [f"{product} = {count(d.tokens_per_s)} tok/s, {accepted}"]
    per_request = d.tokens_per_s_per_request
    if per_request is not None:
        requests = d.requests_per_s(_OUTPUT_TOKENS)
        lines.append(f"{per_request:,.1f} tok/s per request, batch {count(d.batch)}")
        if requests is not None:
            lines.append(f"{requests:,.1f} requests/s at {_OUTPUT_TOKENS} tok each")
    return head, (*lines, *latency_lines(latency))


def _listed(missing: tuple[str, ...], *relevant: str) -> str:
    return ", ".join(word for word in relevant if word in missing) or "more data"


class ConstraintsView(QWidget):
    """The painted part."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Three constraints")
        self.theme = LIGHT
        self._shown: ThreeConstraints | None = None
        self._latency: Latency | None = None

    def show_constraints(self, shown: ThreeConstraints | None, latency: Latency | None = None) -> None:
        """Draw another step, and beside its floor what its all-reduces take."""
        self._shown, self._latency = shown, latency
        self.setFixedHeight(self.sizeHint().height())
        if shown is not None:
            texts = self._texts(shown)
            self.setAccessibleDescription("\n".join(" ".join((head, *lines)) for head, lines in texts))
            self.setToolTip(plain_tooltip("" if shown.verdict is None else shown.verdict.why))
        self.update()

    def _paint(self, canvas: Canvas) -> None:
        t = self.theme
        canvas.begin()
        canvas.fill(QRectF(self.rect()), t.panel)
        shown = self._shown
        if shown is None:
            wide = self.width() - 2 * PAD
            said = wrapped(tuple(NO_STEPS.split(" ")), lambda text: text_width(text, 11), wide, between=" ")
            for i, line in enumerate(said):
                canvas.text(PAD, 24 + i * _LINE, line, Style(11, 400, t.text2))
            return
        binds = "" if shown.verdict is None else shown.verdict.binds
        y = 6.0
        parts = (
            ("Capacity", ("capacity",), self._capacity_bar),
            ("Bandwidth", ("weights", "kv"), self._bandwidth_bar),
            ("Token dependency", ("communication", "compute"), self._chips),
        )
        for (title, key, paint), (head, lines) in zip(parts, self._texts(shown), strict=True):
            word = f"{binds} binds" if binds in ("compute", "communication") else "binding"
            tag = word if binds in key else ""
            y = self._part(canvas, y, title, tag, head)
            paint(canvas, QRectF(PAD, y, self.width() - 2 * PAD, 13), shown)
            y += 16
            for line in lines:
                room = QRectF(PAD, y, self.width() - 2 * PAD, _LINE)
                canvas.text_in(room, line, Style(11, 400, t.text2))
                y += _LINE
            y += 5

    def _texts(self, shown: ThreeConstraints) -> tuple[tuple[str, Lines], ...]:
        """Head and lines of each of the three."""
        return capacity_lines(shown), bandwidth_lines(shown), dependence_lines(shown, self._latency)

    def _part(self, canvas: Canvas, y: float, title: str, tag: str, head: str) -> float:
        t = self.theme
        width = canvas.text(PAD, y + 14, title, Style(12, 600, t.text))
        if tag:
            half = text_width(tag, 10, 600) / 2 + 5
            canvas.tag(PAD + width + 8 + half, y + 2, tag, t.panel, Style(10, 600, t.text), t.ink)
        canvas.text(self.width() - PAD, y + 14, head, Style(12, 600, t.text), RIGHT)
        return y + 21

    def _capacity_bar(self, canvas: Canvas, bar: QRectF, shown: ThreeConstraints) -> None:
        t, memory = self.theme, shown.capacity
        if memory is None:
            canvas.frame(bar, t.border)
            return
        scale = bar.width() / max(memory.capacity_bytes, memory.stored_bytes + memory.kv_stored_bytes)
        weights = QRectF(bar.left(), bar.top(), memory.stored_bytes * scale, bar.height())
        kv = QRectF(weights.right(), bar.top(), memory.kv_stored_bytes * scale, bar.height())
        reserve = memory.reserve_bytes * scale
        canvas.fill(bar, t.panel)
        canvas.hatch(QRectF(bar.right() - reserve, bar.top(), reserve, bar.height()), STATIC, 4)
        canvas.fill(weights, t.kinds["W"].fill)
        canvas.fill(kv, t.kinds["K"].fill)
        canvas.vline(kv.right(), bar.top(), bar.bottom(), t.kinds["K"].edge)
        canvas.frame(bar, t.ink)

    def _bandwidth_bar(self, canvas: Canvas, bar: QRectF, shown: ThreeConstraints) -> None:
        t, memory = self.theme, shown.memory
        longest = max(memory.duration_ns, memory.floor_memory_ns, 1)
        if memory.mbu is None:
            canvas.frame(bar, t.border)
            return
        scale = bar.width() / longest
        weights = QRectF(bar.left(), bar.top(), max(0, memory.floor_weight_ns) * scale, bar.height())
        kv = QRectF(weights.right(), bar.top(), max(0, memory.floor_kv_ns) * scale, bar.height())
        canvas.hatch(QRectF(bar.left(), bar.top(), memory.duration_ns * scale, bar.height()), INK, 5)
        canvas.fill(weights, t.kinds["W"].fill)
        canvas.fill(kv, t.kinds["K"].fill)
        canvas.frame(QRectF(bar.left(), bar.top(), memory.duration_ns * scale, bar.height()), t.ink)
        canvas.halo_vline(kv.right(), bar.top() - 3, bar.bottom() + 3, t.ink, 2)

    def _chips(self, canvas: Canvas, bar: QRectF, shown: ThreeConstraints) -> None:
        """A row of operations, each waiting for the one before it, and the token at the end."""
        t = self.theme
        kind = t.kinds["S"]
        chips = min(_MOST_CHIPS, max(1, shown.dependence.ops_in_series))
        for i in range(chips):
            box = QRectF(bar.left() + i * 11, bar.top() + 2, 8, 8)
            canvas.outline(box.adjusted(0.5, 0.5, -0.5, -0.5), kind.edge, 1, 2, kind.fill)
        left = bar.left() + chips * 11 + 4
        canvas.hline(left, left + 22, bar.top() + 5.5, t.ink, 1.5)
        canvas.arrow(left + 27, bar.top() + 6, t.ink, 1)
        canvas.text(left + 33, bar.top() + 10, "next token", Style(10, 400, t.text2))

    def sizeHint(self) -> QSize:
        shown = self._shown
        if shown is None:
            return QSize(300, 100)
        lines = sum(len(lines) for _, lines in self._texts(shown))
        return QSize(300, 3 * 42 + lines * _LINE + 10)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._paint(Canvas(painter, self.theme, self.devicePixelRatioF()))


class ConstraintsPanel(PanelWidget):
    """Follows the current step."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.view = ConstraintsView()
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        inner = QWidget()
        inside = QVBoxLayout(inner)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.addWidget(self.view)
        inside.addStretch(1)
        area.setWidget(inner)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(area)
        self._key: tuple[object, int] = (None, -1)
        session.view_changed.connect(self.refresh)
        session.document_changed.connect(self.refresh)

    def refresh(self) -> None:
        """Show the current step."""
        document, view = self.session.document, self.session.view
        step = -1 if view is None else view.step
        if (document, step) == self._key:
            return
        self._key = (document, step)
        if document is None or step < 0:
            self.view.show_constraints(None)
        else:
            self.view.show_constraints(document.constraints(step), latency_of_step(document, step))

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.view.theme = theme
        self.view.update()
