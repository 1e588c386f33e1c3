"""Rules of the user: read, refused in words, written, and tried before the built-in ones."""

from pathlib import Path

import pytest

from tests.kit.recordings import GEMM, Recording, decode_kernels
from tracescope.core.category import Category, Op
from tracescope.core.errors import TraceError
from tracescope.recognise.names.kernel_rules import Family, Rule, family_of
from tracescope.recognise.names.user_rules import FAMILIES, append_rule, load_rules, pattern_for
from tracescope.recognise.recognise import recognise


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_rules_are_read_in_their_order(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[[rule]]\npattern = "cake_gemm"\nfamily = "gemm"\n'
        '[[rule]]\npattern = "cake"\nfamily = "attention"\nalso = ["kv_append"]\n',
    )
    assert load_rules(path) == (
        Rule(Family.GEMM, "cake_gemm"),
        Rule(Family.ATTENTION, "cake", (Category.KV_APPEND,)),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rule = 3", "no list"),
        ("[[rule]", "not TOML"),
        ('[[rule]]\npattern = "("\nfamily = "gemm"', "rule 1: not a regular expression"),
        ('[[rule]]\npattern = "(a+)+b"\nfamily = "gemm"', "repeats"),
        ('[[rule]]\npattern = ""\nfamily = "gemm"', "1 to 500"),
        ('[[rule]]\npattern = "x"\nfamily = "gem"', "no family is called 'gem'"),
        ('[[rule]]\npattern = "x"\nfamily = "gemm"\nalso = ["host"]', "roles"),
        ('[[rule]]\npattern = "x"\nfamily = "gemm"\ncolour = "red"', "pattern, family"),
        ('[[rule]]\npattern = "x"\n', "no family"),
    ],
)
def test_what_is_no_rule_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TraceError) as refused:
        load_rules(written(tmp_path, text))
    assert said in refused.value.what
    assert refused.value.action


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        load_rules(tmp_path / "none.toml")


def test_a_new_rule_comes_first_and_leaves_the_text_below_it(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "rules.toml"
    odd = 'odd "name" \\ \t' + "\u202e"
    append_rule(path, Rule(Family.GEMM, pattern_for(odd)))
    path.write_text("# kept\n" + path.read_text())
    append_rule(path, Rule(Family.ATTENTION, "cake", (Category.KV_APPEND,)))
    rules = load_rules(path)
    assert rules[0] == Rule(Family.ATTENTION, "cake", (Category.KV_APPEND,))
    assert family_of(odd, rules) is Family.GEMM
    assert "# kept" in path.read_text()
    assert [p.name for p in path.parent.iterdir()] == ["rules.toml"]


def test_a_file_that_holds_something_else_is_not_written_over(tmp_path: Path) -> None:
    path = written(tmp_path, "mine = 1")
    with pytest.raises(TraceError):
        append_rule(path, Rule(Family.GEMM, "x"))
    assert path.read_text() == "mine = 1"


@pytest.mark.parametrize(
    ("name", "like", "unlike"),
    [
        ("void kernel_cake<4, float>(int)", "void kernel_cake<8, half>(int)", "kernel_pie<4>"),
        ("void at::native::odd<A>", "void at::native::odd<A>", "void at::native::odd<B>"),
        ("k<1>", "k<1>", "k<2>"),
    ],
)
def test_a_pattern_takes_the_kernels_like_one(name: str, like: str, unlike: str) -> None:
    rules = (Rule(Family.GEMM, pattern_for(name)),)
    assert family_of(like, rules) is Family.GEMM
    assert family_of(unlike, rules) is Family.NONE


def test_every_family_that_a_rule_may_name_does_not_say_nothing() -> None:
    assert Family.NONE not in FAMILIES.values()
    assert len(FAMILIES) == len(Family) - 3


def test_user_rules_decide_before_the_built_in_ones() -> None:
    recording = Recording()
    recording.add("execute_context_0(0)_generation_4(4)", "user_annotation", 0, 1000)
    recording.launch(10, decode_kernels(2))
    plain = recognise(recording.raw())
    ruled = recognise(recording.raw(), rules=(Rule(Family.COMMUNICATION, pattern_for(GEMM)),))
    assert int((plain.events.op == Op.ALL_REDUCE).sum()) == 0
    assert int((ruled.events.op == Op.ALL_REDUCE).sum()) == 2 * 4 + 1
    said = [i for i in ruled.meta.report.inferred if i.rule == "user rules"]
    assert said[0].what == "9 events classified by 1 rule of the user"


def test_the_documented_example_can_be_used(tmp_path: Path) -> None:
    documented = (Path(__file__).resolve().parents[2] / "docs" / "RECOGNITION.md").read_text(encoding="utf-8")
    example = documented.split("```toml\n")[1].split("```")[0]
    rules = load_rules(written(tmp_path, example))
    assert family_of("kernel_cake_attn_9f81b2<128>", rules) is Family.ATTENTION
    assert family_of("kernel_cake_9f81b2<128>", rules) is Family.GEMM
    assert rules[0].also == (Category.KV_APPEND,)


def test_every_family_is_documented() -> None:
    documented = (Path(__file__).resolve().parents[2] / "docs" / "RECOGNITION.md").read_text(encoding="utf-8")
    assert [name for name in FAMILIES if f"`{name}`" not in documented] == []
