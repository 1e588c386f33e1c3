"""``--host-overhead``: names of engines, seconds, times with a unit, and what is refused."""

import json

import pytest

from tracescope.cli.app import run
from tracescope.cli.host_overhead import parse_host
from tracescope.core.errors import TraceError
from tracescope.synth.calibrated import NO_HOST, vllm_host


def test_names_seconds_and_times() -> None:
    assert parse_host("vllm") == vllm_host()
    assert parse_host(" None ") == parse_host("0") == NO_HOST
    assert parse_host("0.00005").request_ns == parse_host("50us").request_ns == 50_000
    for text in ("", "soon", "-1", "nan", "1e3"):
        with pytest.raises(TraceError):
            parse_host(text)


def test_a_step_is_predicted_with_the_host_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for host in ("none", "vllm", "0.0001"):
        options = ["--batch", "16", "--context", "4096", "--host-overhead", host, "--json"]
        assert run(["floor", "--model", "llama-3-8b", "--hardware", "h100-sxm", *options]) == 0
        found[host] = json.loads(capsys.readouterr().out)["predicted"]
    assert found["0.0001"]["step_s"] - found["none"]["step_s"] == pytest.approx(16 * 1e-4)
    assert found["none"]["step_s"] < found["vllm"]["step_s"]
    assert (found["vllm"]["left_out"], found["0.0001"]["error_fraction"]) == ("models", None)
