"""The form "Synthesize a run": each field counts, a refused split is one message, the run is the command line's."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tracescope.cli.app import run
from tracescope.core.errors import TraceError
from tracescope.load import save_trace
from tracescope.ui import backend
from tracescope.ui.main_window import MainWindow
from tracescope.ui.settings import SynthForm

MakeWindow = Callable[..., MainWindow]


def test_the_welcome_form_follows_every_field(make_window: MakeWindow) -> None:
    window = make_window()
    card = window.welcome.card
    card.set_form(SynthForm())
    assert "7.045 ms" in card.headline.text()
    assert "2,271 tok/s" in card.headline.text()

    def shown() -> str:
        return card.headline.text() + card.said.text()

    seen = {shown()}
    for change in (
        lambda: card.batch.setValue(17),
        lambda: card.context.setValue(8192),
        lambda: card.hardware.setCurrentIndex(card.hardware.findData("l4")),
        lambda: card.kv.setCurrentIndex(card.kv.findData("fp8")),
        lambda: card.weights.setCurrentIndex(card.weights.findData("int4-g128")),
        lambda: card.ranks.setValue(2),
    ):
        change()
        seen.add(shown())
    assert len(seen) == 7
    card.set_form(SynthForm(hardware="l4", context=8192, batch=17))
    assert "does not fit" in card.said.text()


def test_a_split_that_engines_refuse_is_one_message_in_the_form(make_window: MakeWindow) -> None:
    card = make_window().welcome.card
    card.set_form(SynthForm(ranks=3))
    assert card.said.text() == (
        "llama-3-8b: 32 attention heads do not divide over 3 ranks\nuse one of 1, 2, 4, 8, 16, 32 ranks (--tp)"
    )
    assert not card.button.isEnabled()
    assert card.shown_preview is None
    card.ranks.setValue(16)
    assert card.button.isEnabled()
    assert "one of 16 ranks" in card._whose.text()
    assert "8 KV heads on 16 ranks" in card.said.text()


def test_a_machine_without_a_link_rate_cannot_be_split_over(make_window: MakeWindow) -> None:
    card = make_window().welcome.card
    card.set_form(SynthForm(hardware="lesson-1tbs", ranks=2))
    assert "link" in card.said.text()
    assert not card.button.isEnabled()
    with pytest.raises(TraceError, match="link"):
        backend.synthesize_document(card.form(), "refused as well")


@pytest.mark.parametrize(
    ("form", "options"),
    [
        (SynthForm("llama-3-8b", "h100-sxm", 8, 256, 2, "realistic", 4, "fp8", "int8"), "--weights fp8 --kv int8"),
        (SynthForm("mixtral-8x7b", "a100-80gb-sxm", 16, 64, 2, "ideal", 2, "int4-g128"), "--weights int4-g128"),
        (SynthForm("qwen3-8b", "mi300x", 1, 0, 1, "calibrated"), ""),
    ],
)
def test_the_window_makes_the_trace_that_the_command_makes(form: SynthForm, options: str, tmp_path: Path) -> None:
    made, said = tmp_path / "window.tscope.h5", tmp_path / "command.tscope.h5"
    save_trace(made, backend.synthesize_document(form, form.title).trace)
    named = f"--model {form.model} --hardware {form.hardware} --batch {form.batch} --context {form.context}"
    more = f"--steps {form.steps} --profile {form.profile} --tp {form.ranks} {options}"
    assert run(["synth", *named.split(), *more.split(), "-o", str(said)]) == 0
    assert made.read_bytes() == said.read_bytes()
