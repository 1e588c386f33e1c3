"""Step markers: the texts with which inference engines annotate a step, and what each of them says."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tracescope.core.category import StepKind


@dataclass(frozen=True, slots=True)
class Marker:
    """What one marker's text says. Numbers are -1 where it says nothing.

    ``batch`` requests, ``decodes`` those of them that decode, ``padded_batch`` rows of a padded graph,
    ``context_tokens`` tokens in the cache summed over the requests (of a mixed step over those that decode),
    ``new_tokens`` tokens computed in the step. ``context_includes_new``: the sum may count the step's own tokens.
    ``kind`` is None where the text does not tell what the step computes.
    """

    source: str
    kind: StepKind | None = None
    batch: int = -1
    padded_batch: int = -1
    context_tokens: int = -1
    new_tokens: int = -1
    context_includes_new: bool = False
    decodes: int = -1

    @property
    def says(self) -> int:
        """How many things the text says: the most telling of several nested markers describes the step."""
        known = [self.batch, self.padded_batch, self.context_tokens, self.new_tokens]
        return sum(value >= 0 for value in known) + (self.kind is not None)


def _kind(prefill_requests: int, decode_requests: int) -> StepKind | None:
    if decode_requests and prefill_requests:
        return StepKind.MIXED
    if decode_requests:
        return StepKind.DECODE
    return StepKind.PREFILL if prefill_requests else None


def _vllm(m: re.Match[str]) -> Marker:
    prefills, decodes = int(m["prefills"]), int(m["decodes"])
    new = int(m["pt"]) + int(m["dt"])
    return Marker("vLLM", _kind(prefills, decodes), batch=prefills + decodes, new_tokens=new, decodes=decodes)


def _vllm_new_cached(m: re.Match[str]) -> Marker:
    """``execute_new_1_cached_3`` (vLLM 0.10.1 to 0.11): requests that are new in the step, and others."""
    new, cached = int(m["new"]), int(m["cached"])
    return Marker("vLLM, new and cached", _kind(new, cached), batch=new + cached, decodes=cached)


def _vllm_sums(m: re.Match[str]) -> Marker:
    """The patched form ``execute_context_1(888_788544)_generation_0(0)``: tokens and the sum of their squares."""
    prefills, decodes = int(m["prefills"]), int(m["decodes"])
    return Marker("vLLM", _kind(prefills, decodes), batch=prefills + decodes, decodes=decodes)


def _vllm_detailed(m: re.Match[str]) -> Marker:
    prefills, decodes = int(m["prefills"]), int(m["decodes"])
    new = int(m["psq"]) + int(m["dsq"])
    # In a mixed step the floor counts the decode rows, so only their cache is summed.
    context = int(m["dsk"]) if decodes else int(m["psk"])
    kind, batch = _kind(prefills, decodes), prefills + decodes
    return Marker("vLLM", kind, batch, -1, context, new, context_includes_new=True, decodes=decodes)


_SGLANG_KINDS = {
    "DECODE": StepKind.DECODE,
    "EXTEND": StepKind.PREFILL,
    "PREFILL": StepKind.PREFILL,
    "MIXED": StepKind.MIXED,
    "VERIFY": StepKind.VERIFY,
    "TARGET_VERIFY": StepKind.VERIFY,
}


def _numbers(text: str) -> dict[str, int]:
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)(?![\d/])", text)}


def _sglang(m: re.Match[str]) -> Marker:
    numbers = _numbers(m["rest"])
    kind = _SGLANG_KINDS.get(m["kind"], StepKind.OTHER)
    # Sums over the requests that generate (g) and over those in their prompt (c): a mixed step counts the former.
    summed = [numbers[key] for key in (("g_sk",) if kind is StepKind.MIXED else ("g_sk", "c_sk")) if key in numbers]
    context = sum(summed) if summed else -1
    batch, new = numbers.get("bs", -1), numbers.get("toks", -1)
    decodes = numbers.get("g_sq", -1) if kind is StepKind.MIXED else -1  # each of them computes one token
    return Marker("SGLang", kind, batch, -1, context, new, context >= 0, decodes)


def _atom(m: re.Match[str]) -> Marker:
    numbers = _numbers(m["rest"])
    padded = re.search(r"\bbs=(\d+)/(\d+)", m["rest"])
    context = re.search(r"ctx=\[([\d, ]*)\]", m["rest"])
    total = sum(int(n) for n in context[1].replace(",", " ").split()) if context else -1
    batch, padded_batch = (int(padded[1]), int(padded[2])) if padded else (numbers.get("bs", -1), -1)
    kind = StepKind.DECODE if m["kind"] == "decode" else StepKind.PREFILL
    return Marker("ATOM", kind, batch, padded_batch, total, numbers.get("tok", -1), total >= 0)


def _tensorrt(m: re.Match[str]) -> Marker:
    prefills, decodes = int(m["ctx"]), int(m["gen"])
    return Marker("TensorRT-LLM", _kind(prefills, decodes), prefills + decodes, decodes=decodes)


def _own_decode(m: re.Match[str]) -> Marker:
    batch = int(m["bs"])
    return Marker("decode_step", StepKind.DECODE, batch, -1, batch * int(m["ctx"]), batch)


def _own_prefill(m: re.Match[str]) -> Marker:
    return Marker("prefill", StepKind.PREFILL, int(m["bs"]), -1, 0, int(m["toks"]))


def _torch(_: re.Match[str]) -> Marker:
    return Marker("ProfilerStep")


_SK = r"sq(?P<{0}sq>\d+)sk(?P<{0}sk>\d+)sqsq\d+sqsk\d+"

MARKERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Marker]], ...] = (
    (
        re.compile(
            rf"^execute_\d+_context_(?P<prefills>\d+)\({_SK.format('p')}\)"
            rf"_generation_(?P<decodes>\d+)\({_SK.format('d')}\)"
        ),
        _vllm_detailed,
    ),
    (
        re.compile(r"^execute_context_(?P<prefills>\d+)\((?P<pt>\d+)\)_generation_(?P<decodes>\d+)\((?P<dt>\d+)\)"),
        _vllm,
    ),
    (re.compile(r"^execute_context_(?P<prefills>\d+)\([\d_]+\)_generation_(?P<decodes>\d+)\([\d_]+\)"), _vllm_sums),
    (re.compile(r"^execute_new_(?P<new>\d+)_cached_(?P<cached>\d+)"), _vllm_new_cached),
    (re.compile(r"^step\[(?P<kind>[A-Z_]+)(?P<rest>[^\]]*)"), _sglang),
    (re.compile(r"^(?P<kind>decode|prefill)\[(?P<rest>bs=.*)"), _atom),
    (
        re.compile(r"^\[Executor\] _forward_step\b.*?(?P<ctx>\d+) ctx reqs.*?(?P<gen>\d+) gen(?:eration)? reqs"),
        _tensorrt,
    ),
    (re.compile(r"^decode_step#\d+ bs=(?P<bs>\d+) ctx=(?P<ctx>\d+)"), _own_decode),
    (re.compile(r"^prefill bs=(?P<bs>\d+) toks=(?P<toks>\d+)"), _own_prefill),
    (re.compile(r"^ProfilerStep\s?#\d+"), _torch),
)
"""Marker texts and their readers; the first that matches reads the text."""


def read_marker(text: str) -> Marker | None:
    """What ``text`` says about a step; None where it is no step marker."""
    for pattern, read in MARKERS:
        match = pattern.search(text)
        if match:
            return read(match)
    return None


SAMPLE_SCOPES = re.compile(r"^(sample|gpu_model_runner: sample|sampler?)$", re.IGNORECASE)
"""Annotations that enclose token selection and nothing else."""
