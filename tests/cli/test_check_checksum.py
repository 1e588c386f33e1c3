"""``check`` reads the stored columns again: one changed byte in the stored hash is a finding, not a pass."""

import json
from pathlib import Path

from click.testing import CliRunner

from tracescope.cli.app import tracescope
from tracescope.core.model import Workload
from tracescope.io.gate import inspect
from tracescope.load import damage_of, save_trace
from tracescope.models import load_hardware, load_model, make_basis
from tracescope.synth.decode import synthesize


def test_a_file_whose_hash_does_not_match_its_columns_fails_the_check(tmp_path: Path) -> None:
    path = tmp_path / "run.tscope.h5"
    basis = make_basis(load_hardware("lesson-1tbs"))
    save_trace(path, synthesize(load_model("lesson-20gb"), basis, Workload(), steps=2))
    assert damage_of(path) is None
    stored = inspect(path).sha256.encode()
    data = path.read_bytes()
    assert data.count(stored) == 1
    path.write_bytes(data.replace(stored, bytes(reversed(stored))))
    result = CliRunner().invoke(tracescope, ["check", str(path), "--json"], standalone_mode=False)
    findings = json.loads(result.stdout)["findings"]
    assert result.return_value == 1
    assert [(f["rule"], f["severity"]) for f in findings if f["severity"] == "error"] == [("checksum", "error")]
