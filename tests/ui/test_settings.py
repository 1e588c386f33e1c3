"""Settings survive a round trip, a broken file, and a folder that cannot be written."""

from dataclasses import replace
from pathlib import Path

import pytest

from tracescope.ui.settings import RECENT_LIMIT, Recent, Settings, SettingsStore, SynthForm


def test_a_round_trip_keeps_every_field(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "settings.json"
    store = SettingsStore(path)
    changed = Settings(
        theme="dark",
        wheel_zooms=False,
        folder="/somewhere",
        export_scale=3,
        overlays=("floor",),
        replay_speed=10_000,
        recent=(Recent("/a.tscope.h5", 1, 2, 0.5, "2030-01-02T03:04"), Recent("/b.json")),
        synth=SynthForm("m", "h", 2, 3, 4, "ideal", 8, "fp8", "int8"),
        geometry="AAAA",
        layout="BBBB",
    )
    default = Settings()
    fields = {name: getattr(changed, name) for name in Settings.__dataclass_fields__}
    assert all(value != getattr(default, name) for name, value in fields.items())
    store.change(**fields)
    assert SettingsStore(path).value == changed
    assert not list(path.parent.glob("*.part"))


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff\xfe", b"[1]", b'{"theme": 3}', b'{"recent": {"a": 1}}', b"[" * 9999]
)
def test_a_broken_file_is_set_aside_and_defaults_are_used(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(text)
    store = SettingsStore(path)
    assert store.value == Settings()
    assert "kept as settings.broken.json" in store.problem
    assert (tmp_path / "settings.broken.json").read_bytes() == text
    store.change(theme="dark")
    assert SettingsStore(path).value.theme == "dark"


def test_keys_of_another_version_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"theme": "dark", "from_the_future": [1, 2]}')
    store = SettingsStore(path)
    assert (store.value.theme, store.problem) == ("dark", "")


def test_an_unknown_theme_becomes_the_systems(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"theme": "sepia"}')
    assert SettingsStore(path).value.theme == "system"


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = SettingsStore(tmp_path / "file" / "settings.json")
    store.change(theme="dark")
    assert "could not be" in store.problem
    assert store.value.theme == "dark"


def test_an_equal_value_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    SettingsStore(path).change(theme="system")
    assert not path.exists()


def test_recent_traces_are_unique_newest_first_and_few(tmp_path: Path) -> None:
    store = SettingsStore(tmp_path / "settings.json")
    for i in range(RECENT_LIMIT + 3):
        store.remember(Recent(f"/{i}"))
    store.remember(Recent("/5", steps=9))
    paths = [r.path for r in store.value.recent]
    assert len(paths) == RECENT_LIMIT
    assert paths[0] == "/5"
    assert paths.count("/5") == 1


def test_fresh_forgets_the_layout_only(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    SettingsStore(path).change(geometry="AAAA", layout="BBBB", theme="dark")
    fresh = SettingsStore(path, fresh_layout=True)
    assert fresh.value == replace(Settings(), theme="dark")
