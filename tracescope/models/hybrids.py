"""Layers with a recurrent state, from the keys of a config.json: Mamba 1 and 2, gated delta rules, short convolutions.

Shapes follow the public modelling code of each family. The state is kept in fp32 unless the config names another dtype;
of the convolution the past ``kernel - 1`` columns are kept. FLOPs of a recurrence are those of its multiplications and
additions on every element of the state, a few percent of a step at most.
"""

from typing import Any, Final

from tracescope.core.category import Op
from tracescope.core.errors import TraceError
from tracescope.core.layer_parts import Projection, Recurrent
from tracescope.models.config_reader import Reader
from tracescope.models.limits import shown

_STATE_DTYPES: Final = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
_DTYPE_KEYS: Final = ("mamba_ssm_dtype", "mamba_ssm_cache_dtype", "ssm_cache_dtype")
_SSM_FLOPS: Final = 6
"""A state element a token: decay, input and sum (4), product with the output vector (2)."""
_DELTA_FLOPS: Final = 8
"""The same, and the product with the key that the delta rule takes off (2)."""


def _into(module: str, hidden: int, width: int, *, bias: bool = False, split: str = "out") -> Projection:
    return Projection(Op.QKV, module, hidden, width, bias, split)


def _out(module: str, width: int, hidden: int, *, bias: bool = False) -> Projection:
    return Projection(Op.O, module, width, hidden, bias, "in")


def state_dtype(reader: Reader) -> str:
    """The dtype that the config keeps its states in, fp32 where it does not say; raises TraceError for another one."""
    for key in _DTYPE_KEYS:
        value: Any = reader.config.get(key)
        if value in (None, "auto"):
            continue
        name = _STATE_DTYPES.get(value.removeprefix("torch.")) if isinstance(value, str) else None
        if name is None:
            raise TraceError(f"{reader.where}: {key} {shown(value)} is not known", action="Known: float32, bfloat16.")
        return name
    return "fp32"


def mamba1(reader: Reader, hidden: int) -> Recurrent:
    """Jamba's selective state space: ``expand`` × hidden channels, each with a state of ``d_state``."""
    inner = reader.number("mamba_expand", 2) * hidden
    states, kernel = reader.number("mamba_d_state", 16), reader.number("mamba_d_conv", 4)
    rank = -(-hidden // 16) if reader.config.get("mamba_dt_rank") in (None, "auto") else reader.number("mamba_dt_rank")
    conv_bias, bias = reader.truth("mamba_conv_bias") is not False, reader.truth("mamba_proj_bias") is True
    return Recurrent(
        "Mamba-1",
        inner * states,
        inner * (kernel - 1),
        state_dtype(reader),
        (
            _into("mamba.in_proj", hidden, 2 * inner, bias=bias),
            Projection(Op.QKV, "mamba.x_proj", inner, rank + 2 * states, split="in"),
            Projection(Op.QKV, "mamba.dt_proj", rank, inner, bias=True, split="out"),
            _out("mamba.out_proj", inner, hidden, bias=bias),
        ),
        # convolution, decay and skip of every channel, and norms of step, input and output vectors
        beside=inner * (kernel + conv_bias + states + 1) + rank + 2 * states,
        flops=_SSM_FLOPS * inner * states + 2 * inner * kernel,
    )


def mamba2(
    reader: Reader, hidden: int, *, heads: int, head_dim: int, groups: int, states: int, kernel: int, gated_norm: bool
) -> Recurrent:
    """Mamba-2: ``heads`` × ``head_dim`` channels that share ``groups`` pairs of input and output vectors."""
    inner = heads * head_dim
    convolved = inner + 2 * groups * states
    bias = any(reader.truth(key) is True for key in ("mamba_proj_bias", "use_bias"))
    conv_bias = all(reader.truth(key) is not False for key in ("mamba_conv_bias", "use_conv_bias"))
    return Recurrent(
        "Mamba-2",
        inner * states,
        convolved * (kernel - 1),
        state_dtype(reader),
        (
            _into("mamba.in_proj", hidden, inner + convolved + heads, bias=bias),
            _out("mamba.out_proj", inner, hidden, bias=bias),
        ),
        beside=convolved * (kernel + conv_bias) + 3 * heads + inner * gated_norm,
        flops=_SSM_FLOPS * inner * states + 2 * convolved * kernel,
    )


def mamba2_of(reader: Reader, hidden: int, *, gated_norm: bool = True) -> Recurrent:
    """Mamba-2 under the keys of Granite, Bamba and Falcon-H1 (``mamba_n_heads``)."""
    heads = reader.number("mamba_n_heads", 128)
    wide = reader.config.get("mamba_d_ssm")
    inner = reader.number("mamba_expand", 2) * hidden if wide is None else reader.number("mamba_d_ssm")
    given = reader.config.get("mamba_d_head")
    head_dim = inner // heads if given in (None, "auto") else reader.number("mamba_d_head")
    if heads * head_dim != inner:
        raise TraceError(f"{reader.where}: mamba_n_heads {heads} × mamba_d_head {head_dim} is not the width {inner}")
    return mamba2(
        reader,
        hidden,
        heads=heads,
        head_dim=head_dim,
        groups=reader.number("mamba_n_groups", 1),
        states=reader.number("mamba_d_state", 256),
        kernel=reader.number("mamba_d_conv", 4),
        gated_norm=gated_norm,
    )


def mamba2_of_nemotron(reader: Reader, hidden: int) -> Recurrent:
    """Mamba-2 under the keys of Nemotron-H (``mamba_num_heads``)."""
    groups = reader.config.get("mamba_num_groups")
    return mamba2(
        reader,
        hidden,
        heads=reader.number("mamba_num_heads"),
        head_dim=reader.number("mamba_head_dim"),
        groups=reader.number("n_groups", 8) if groups is None else reader.number("mamba_num_groups"),
        states=reader.number("ssm_state_size"),
        kernel=reader.number("conv_kernel", 4),
        gated_norm=True,
    )


def gated_delta(reader: Reader, hidden: int) -> Recurrent:
    """Gated delta rule of Qwen3-Next and Qwen3.5: a matrix of key × value a value head."""
    keys, values = reader.number("linear_num_key_heads"), reader.number("linear_num_value_heads")
    key_dim, value_dim = reader.number("linear_key_head_dim"), reader.number("linear_value_head_dim")
    kernel = reader.number("linear_conv_kernel_dim", 4)
    convolved = 2 * keys * key_dim + values * value_dim
    state = values * key_dim * value_dim
    return Recurrent(
        "gated delta",
        state,
        convolved * (kernel - 1),
        state_dtype(reader),
        (
            _into("linear_attn.in_proj_qkvz", hidden, convolved + values * value_dim),
            _into("linear_attn.in_proj_ba", hidden, 2 * values),
            _out("linear_attn.out_proj", values * value_dim, hidden),
        ),
        beside=convolved * kernel + 2 * values + value_dim,
        flops=_DELTA_FLOPS * state + 2 * convolved * kernel,
    )


def short_convolution(reader: Reader, hidden: int) -> Recurrent:
    """LFM2's gated convolution: nothing is kept but the last columns."""
    kernel, bias = reader.number("conv_L_cache", 3), reader.truth("conv_bias") is True
    return Recurrent(
        "short convolution",
        0,
        hidden * (kernel - 1),
        weights=(
            _into("conv.in_proj", hidden, 3 * hidden, bias=bias),
            _out("conv.out_proj", hidden, hidden, bias=bias),
        ),
        beside=hidden * (kernel + bias),
        flops=2 * hidden * kernel,
    )


def lightning(reader: Reader, hidden: int, heads: int, head_dim: int) -> Recurrent:
    """MiniMax's lightning attention: a matrix of key × value a head, no convolution, an output gate and a norm."""
    width = heads * head_dim
    return Recurrent(
        "lightning attention",
        width * head_dim,
        0,
        state_dtype(reader),
        (
            _into("self_attn.qkv_proj", hidden, 3 * width),
            _into("self_attn.output_gate", hidden, width),
            _out("self_attn.out_proj", width, hidden),
        ),
        beside=width,
        flops=_SSM_FLOPS * width * head_dim,
    )
