"""What a kernel or an operator is, by its name: ordered tables, one line a rule, the first match wins."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tracescope.core.category import Category, Op
from tracescope.core.columns import U8, U16, U32


class Family(IntEnum):
    """The part an event plays in a step's sequence; layers and op names are read off the order of families."""

    NONE = 0
    COPY = 1
    COMMUNICATION = 2
    APPEND = 3
    BOOKKEEPING = 4
    ATTENTION = 5
    ATTENTION_PART = 6
    """Reduces or combines what an attention kernel left: the same op, no bytes of its own."""
    EXPERTS = 7
    ROUTING = 8
    ROPE = 9
    NORM = 10
    ACT = 11
    QUANT = 12
    SAMPLE = 13
    GEMM = 14
    GEMM_PART = 15
    """The reduction of a split GEMM: the op of the GEMM before it, no bytes of its own."""
    EMBED = 16
    ELEMENTWISE = 17
    NORM_PART = 18
    """A later operator of a norm that was written out in elementary operators."""
    NORM_OPENING = 19
    """The first operator of such a norm, where a later one of them reads the weights."""
    RANKING = 20
    """Softmax, top-k and sorts: they select tokens after the last layer, and compute anywhere else."""
    WAIT = 21
    """A device that waits for another stream or signals it: recognised, and no work."""
    GRAPH = 22
    """A whole graph as one event, where the recording holds none of its kernels."""
    BACKWARD = 23
    """Attention backwards, as in training: it reads no cache."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a table: names that contain ``pattern`` belong to ``family``; ``also`` are a fused kernel's further
    roles. Patterns are searched anywhere in the name, without regard to case: names come mangled, demangled or plain.
    A word inside another (``gemm`` in the name of a library) is kept out by what may stand around it.
    """

    family: Family
    pattern: str
    also: tuple[Category, ...] = ()


WEIGHT, KV_READ, KV_APPEND, COMM = Category.WEIGHT_READ, Category.KV_READ, Category.KV_APPEND, Category.COMMUNICATION

KERNEL_RULES: tuple[Rule, ...] = (
    # Copies between places; a kernel that copies as part of a computation is elementwise.
    Rule(Family.COPY, r"^mem(cpy|set)|__amd_rocclr_(copy|fill)buffer|^(hip|cu(da)?)_?mem(cpy|set)|^dma_request"),
    Rule(Family.COPY, r"^copy(-start|-done)?(\.\d+)?$"),
    Rule(Family.GRAPH, r"^cuda graph( \d+)?$"),
    Rule(Family.WAIT, r"^(event|notify)_(wait|record)|semaphore_wait|streamwaitvalue"),
    # Communication, also where it is fused with a norm or a GEMM.
    Rule(Family.COMMUNICATION, r"nccl|rccl|hccl|hcom_|cross_device_(reduce|all_gather)|all[-_]?reduce|all[-_]?gather"),
    Rule(
        Family.COMMUNICATION,
        r"reduce[-_]?scatter|all[-_]?to[-_]?all|all2all|multimem|lamport|mnnvl|nvshmem|moea2a|deep_ep",
    ),
    Rule(Family.COMMUNICATION, r"quick_?reduce|userbuffers|collective-permute|moe_?distribute"),
    # KV append before attention and rope: the fused ones carry those words too.
    Rule(Family.APPEND, r"indexer_k_quant_and_cache|reshape_?and_?cache|concat_and_cache|appendpagedkv"),
    Rule(Family.APPEND, r"dynamic[-_]update[-_]slice|scatter_?pa_?(kv|cache)|kv_?rms_?norm_?rope_?cache"),
    Rule(Family.APPEND, r"store_?kv|set_(mla_)?kv_buffer|kv\w*insert|updatekvcache|k_set_rows|index_copy"),
    Rule(Family.BOOKKEEPING, r"get_mla_metadata|prepare_varlen|kv_indices|slot_mapping|req_to_token|block_table"),
    Rule(Family.BOOKKEEPING, r"resolve_future_token|(clamp|compute)_position|prepare_(pos|input|decode)"),
    Rule(Family.BOOKKEEPING, r"page_(table|ind)|bounds_check|bucketi[sz]e"),
    # Routing before attention: `combined_routing` would else be an attention combine.
    Rule(Family.ROUTING, r"moe_align|topk_?gating|grouped_topk|routing|_topk_forward|bitmatrix|expert_offsets"),
    Rule(
        Family.ROUTING,
        r"moe_?sum|moesoftmax|finalize_?(matmul|moe)|moe_?finalize|topk_?softmax|count_and_sort_expert",
    ),
    Rule(Family.ROUTING, r"expert(prefix|maps|firsttoken)|expandinputrows|moe_?(un)?permute|moe::dev"),
    Rule(Family.ROUTING, r"moe\w*combine|moe_?(init_?routing|re_?routing|token_?(un)?permute|gating)"),
    Rule(Family.EXPERTS, r"moe\w*_stage[12]|moe\w*marlin|(?<![a-z])ragged_dot"),
    # Attention before GEMM: `cutlass::device_kernel<flash::…>` is attention.
    Rule(Family.ATTENTION_PART, r"reduce_segments|paged_attention\w*_reduce|splitkv_\w*combine|merge_(attn_)?state"),
    Rule(
        Family.ATTENTION_PART,
        r"(attn|attention|fmha|mla)\w*(combine|reduce)|(fwd|att\w*|decode)\w*stage2|flash_fwd\w*combine",
    ),
    Rule(Family.BACKWARD, r"(attn|attention|fmha|flash|sdpa)\w*(bwd|backward|bprop|(?<!no_)grad)|fmha\w*cutlassb"),
    Rule(Family.BACKWARD, r"(?<![a-z])bwd_(kernel_(fuse|dk|dq|dv)|preprocess|prepare_do)|^_?bwd_kernel"),
    Rule(Family.ATTENTION, r"masked_multihead|(?<![a-z])mmha", also=(KV_APPEND,)),
    Rule(Family.ATTENTION, r"flash_?fwd|flash_?attn|pytorch_flash|fmha|paged_attention|batchdecode|batchprefill"),
    Rule(Family.ATTENTION, r"singledecode|batchmla|unified_attention|flash_mla|_mla_|mla_decode|sparse_attn"),
    Rule(Family.ATTENTION, r"_fwd_(grouped_)?kernel_stage1|xqa|attn_(ext|vec|tile)|attention_kernel"),
    Rule(
        Family.ATTENTION,
        r"_attn_fwd|attn_fwd|flex_attention|sdpa\w*fprop|mla_(a\d|dec|fwd|pfl)|(?<![a-z])pa_(bf|fp)\d",
    ),
    Rule(Family.ATTENTION, r"infer_?attention|attention_?score|(prompt|incre)_?flash|^_fwd_kernel$|extend_attention"),
    Rule(Family.ATTENTION, r"sage_?(fwd|attn|attention)|qk_int\w*_sv_|micro_sdpa|(?<![a-z])mla_?(prolog|preprocess)"),
    Rule(Family.ATTENTION_PART, r"(split_?kv|decode|flash|softmax|fwd)\w*combine|^_?combine_?(kernel|attn|split)"),
    # Expert GEMMs before activation and GEMM: `_matmul_ogs_…_swiglu` is one kernel of the experts.
    Rule(
        Family.EXPERTS, r"matmul_ogs|_?group(ed)?_?(gemm|matmul)|bmm_.*rm_tn|fused_moe_kernel|moe_?gemm|fmoe|moe_?mlp"
    ),
    Rule(Family.EXPERTS, r"m_grouped\w*gemm|mul_mat_(vec_)?id"),
    Rule(Family.ROPE, r"rotary|(?<![a-z])rope(?![a-z])|_rope|rope_|ropequant|apply_rope"),
    Rule(Family.NORM, r"(rms|layer|group|batch|instance)_?norm|rmsnorm|norm_fwd|cunn_layer|l2norm|bn_(fw|bw)_"),
    Rule(Family.NORM, r"rowwisemoments|fusedparamscuda|internalgradients|gradgammabeta|gammabetabackward"),
    Rule(Family.ACT, r"act_and_mul|silu|gelu|swiglu|relu_?sq|sigmoid_mul"),
    Rule(
        Family.SAMPLE,
        r"(?<!up)(?<!down)(?<!re)(?<!sub)(?<!over)(?<!under)(?<!grid_)sampl(e|ing)|top_?k_?top_?p|(?-i:TopP|MinP)|arg_?max|multinomial|onlinesoftmax",
    ),
    Rule(Family.SAMPLE, r"penalt|radixtopk|rejection|gumbel"),
    Rule(Family.RANKING, r"radixsort|soft_?max|gathertopk|bitonicsort|sort_?by_?key|argsort|^sort(\.\d+)?$"),
    Rule(Family.GEMM, r"quant_?(batch_?)?mat_?mul"),
    Rule(Family.QUANT, r"quant(?!ile|um)|cvt_fp|per_token_group|rowwise_?to_?(float|half|bf)|to_?fp8rowwise"),
    # What a compiler joined to a GEMM or a convolution and is none, and what prepares one.
    Rule(Family.ELEMENTWISE, r"triton_poi_"),
    Rule(Family.BOOKKEEPING, r"compute\w*offsetskernel|generatewinogradtiles"),
    Rule(
        Family.GEMM_PART,
        r"split_?k_?reduce|reduce_?split_?k|gemmk1_kernel_reduce|cijk_\w*postgsu|_reduction_splitk",
    ),
    Rule(Family.GEMM_PART, r"winograd(forward|wgrad|dgrad)?(data|filter|output|delta)|reduce_wgrad|im2col|col2im"),
    Rule(Family.GEMM_PART, r"fft2d_|flip_filter|cublaslt::epilogue|cutlass::reduction"),
    # A library (fbgemm) and a model (gemma) have the word in their names.
    Rule(Family.GEMM, r"(?<!fb)gemm(?!a(?![a-z])|ini|lowp)|gemv|nvjet"),
    Rule(Family.GEMM, r"cijk_|xmma|cutlass|marlin|machete|wvsplitk|mul_mat|matmul|splitk|cublas"),
    Rule(Family.GEMM, r"^(\w+_)?dot(_general)?(_\w*fusion)?([._]\d+)?$|^(fc|bmm|mm|linear|addmm)-dtype"),
    Rule(Family.GEMM, r"triton_(tem_fused_\w*)?(add|b)?mm"),
    # Convolutions read their weights as a GEMM does.
    Rule(Family.GEMM, r"[hsi]\d*cudnn_|winograd|[dw]grad|fprop|implicit_?con|(?<!causal_)conv(?!er|ex)|miopensp3"),
    Rule(Family.EMBED, r"vectorized_gather|embedding|k_get_rows|indexselect|index_select|^(tbe|eb)\w*-dtype"),
    Rule(
        Family.ELEMENTWISE,
        r"elementwise|triton_(poi|per|red|tem)|catarray|reduce_kernel|multi_tensor_apply|fillfunctor",
    ),
    Rule(
        Family.ELEMENTWISE,
        r"rocprim|cub::|devicescan|devicereduce|index(ing)?_|gather|scatter|copy_kernel|transpose",
    ),
    Rule(
        Family.ELEMENTWISE,
        r"pool(ing)?_?(forward|backward|fwd|bwd|2d|3d)|upsample|grid_sampl|dropout|nllcriterion|nll_loss",
    ),
    Rule(
        Family.ELEMENTWISE,
        r"nchwtonhwc|nhwctonchw|scalepackedtensor|op_?tensor|subtensorop|tensorop|cross_entropy",
    ),
    Rule(Family.ELEMENTWISE, r"k_bin_bcast|unary_(op|gated)|cpy_|concat_f|scale_f32|convert_unary|sum_rows|add_id"),
    Rule(
        Family.ELEMENTWISE,
        r"causal_conv1d|selective_scan|chunk_scan|state_passing|gated_delta|adamw?_|fused_adam",
    ),
    Rule(
        Family.ELEMENTWISE,
        r"(?<![a-z])(permute|concat|slice|pad|cast|convert|fill|cumsum|unique|nonzero|histogram|segment|jagged)",
    ),
    Rule(Family.ELEMENTWISE, r"(?<![a-z])(regular|vector|r2c|c2r)\w*fft|(?<![a-z])fft(?![a-z])|flip_kernel|roll_cuda"),
    # A fusion of a compiler, where none of its words said product, copy or collective; and what it names by its op.
    Rule(Family.ELEMENTWISE, r"^(\w+[_-])?fusion(\.\d+)?$"),
    Rule(
        Family.ELEMENTWISE,
        r"^(wrapped_)?(broadcast|reshape|bitcast|select|iota|reduce(-window)?|add|subtract|multiply|divide|maximum|"
        r"minimum|exponential|tanh|rsqrt|compare|and|or|not|negate|clamp|reverse|rng\S*|dynamic-slice)([._-]\d+)?$",
    ),
    Rule(
        Family.ELEMENTWISE,
        r"^(inplace)?(adds?|sub|muls?|div|real_?div|maximum|minimum|pow|exp|sqrt|rsqrt|neg|abs|tile|stridedslice|"
        r"transdata|zeroslike|oneslike|viewcopy|tensormove|split|reduce(sum|mean|max|min|all|any))(v\d|d)?$",
    ),
    # Single operators of a library that has nothing but them: those with weights or a cache are told above.
    Rule(Family.ELEMENTWISE, r"^aclnn\w|^[a-z_0-9]+-dtype_\w+$"),
    # An accelerator that names the kind of work and not the kernel.
    Rule(Family.ELEMENTWISE, r"^(pe_exe|merge|remote)$"),
)
"""Kernels and copies on a device. Order is meaning; a new kernel family is one line in the right place."""

OPERATOR_RULES: tuple[Rule, ...] = (
    Rule(Family.COMMUNICATION, r"c10d::|nccl|hccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all"),
    Rule(Family.BACKWARD, r"(dot_product|flash|efficient)_attention\w*backward"),
    Rule(Family.APPEND, r"^aten::(index_copy_?|_?index_put(_impl)?_)$|reshape_and_cache|kv_cache"),
    Rule(
        Family.ATTENTION,
        r"scaled_dot_product|flash_attention|efficient_attention|paged_attention|unified_attention|flash_attn",
    ),
    Rule(Family.EXPERTS, r"fused_moe|moe_forward|_?grouped_mm|fused_experts"),
    Rule(Family.EMBED, r"^aten::embedding(_bag)?$"),
    Rule(Family.ROPE, r"rotary_emb|apply_rope"),
    Rule(Family.NORM, r"(rms|layer)_?norm"),
    Rule(Family.ACT, r"^aten::(silu|gelu|relu|glu)_?$|act_and_mul|(silu|gelu)_and_mul"),
    Rule(Family.SAMPLE, r"^aten::(argmax|multinomial)$"),
    Rule(Family.RANKING, r"^aten::(topk|_?softmax|_?log_softmax|sort)$"),
    Rule(Family.GEMM, r"^aten::(linear|matmul|mm|addmm|bmm|baddbmm|_int_mm|_scaled_mm)$|linear_pointwise"),
    Rule(Family.GEMM, r"mkldnn.*linear|_weight_int(4|8)pack_mm|quantized::linear|^aten::\w*conv(olution|[123]d)"),
    Rule(Family.GEMM, r"(?<!fb)gemm(?!a(?![a-z]))|scaled_mm"),
    Rule(Family.ELEMENTWISE, r"^aten::|^prims::"),
)
"""Operators of a trace without a device; the outermost operator that matches is one op, what it calls belongs to it."""

OP_OF_FAMILY: dict[Family, Op] = {
    Family.NONE: Op.NONE,
    Family.COPY: Op.OTHER,
    Family.COMMUNICATION: Op.ALL_REDUCE,
    Family.APPEND: Op.KV_APPEND,
    Family.BOOKKEEPING: Op.BLOCK_TABLE,
    Family.ATTENTION: Op.ATTENTION,
    Family.ATTENTION_PART: Op.ATTENTION,
    Family.EXPERTS: Op.EXPERTS,
    Family.ROUTING: Op.ROUTER,
    Family.ROPE: Op.ROPE,
    Family.NORM: Op.NORM,
    Family.ACT: Op.ACT,
    Family.QUANT: Op.OTHER,
    Family.SAMPLE: Op.SAMPLE,
    Family.GEMM: Op.OTHER,
    Family.GEMM_PART: Op.OTHER,
    Family.EMBED: Op.EMBED,
    Family.ELEMENTWISE: Op.OTHER,
    Family.NORM_PART: Op.NORM,
    Family.NORM_OPENING: Op.NORM,
    Family.RANKING: Op.OTHER,
    Family.WAIT: Op.OTHER,
    Family.GRAPH: Op.OTHER,
    Family.BACKWARD: Op.OTHER,
}
"""The op of a family where its place in a layer says nothing finer."""

CATEGORY_OF_FAMILY: dict[Family, Category] = {
    Family.NONE: Category.OTHER,
    Family.COPY: Category.COPY,
    Family.COMMUNICATION: Category.COMMUNICATION,
    Family.APPEND: Category.KV_APPEND,
    Family.BOOKKEEPING: Category.COMPUTE,
    Family.ATTENTION: Category.KV_READ,
    Family.ATTENTION_PART: Category.KV_READ,
    Family.EXPERTS: Category.WEIGHT_READ,
    Family.ROUTING: Category.COMPUTE,
    Family.ROPE: Category.COMPUTE,
    Family.NORM: Category.COMPUTE,
    Family.ACT: Category.COMPUTE,
    Family.QUANT: Category.COMPUTE,
    Family.SAMPLE: Category.TOKEN_SELECTION,
    Family.GEMM: Category.WEIGHT_READ,
    Family.GEMM_PART: Category.WEIGHT_READ,
    Family.EMBED: Category.WEIGHT_READ,
    Family.ELEMENTWISE: Category.COMPUTE,
    Family.NORM_PART: Category.COMPUTE,
    Family.NORM_OPENING: Category.COMPUTE,
    Family.RANKING: Category.COMPUTE,
    Family.WAIT: Category.OTHER,
    Family.GRAPH: Category.OTHER,
    Family.BACKWARD: Category.COMPUTE,
}


PARTS = frozenset(
    {
        Family.ATTENTION_PART,
        Family.GEMM_PART,
        Family.NORM_PART,
        Family.NORM_OPENING,
        Family.ROUTING,
    }
)
"""Families that carry no bytes of their op unless shapes say so."""


MODEL_PARTS = frozenset(
    {
        Family.APPEND,
        Family.ATTENTION,
        Family.EXPERTS,
        Family.ROPE,
        Family.NORM,
        Family.GEMM,
        Family.EMBED,
    }
)
"""Families that only a running forward pass has: from the first of them on, the step has begun."""


def family_of(name: str, rules: Sequence[Rule] = KERNEL_RULES) -> Family:
    """The family of one name; ``Family.NONE`` where no rule matches."""
    index = _first_match(name, _compiled(rules))
    return rules[index].family if index >= 0 else Family.NONE


def classify(names: Sequence[str], used: U32, rules: Sequence[Rule]) -> tuple[U8, U16]:
    """Family and further roles (bitmask) of ``names``; u8[names], u16[names].

    Only the indices in ``used`` are looked at, once each: a file with Python stacks has far more names than kernels.
    """
    compiled = _compiled(rules)
    family = np.zeros(len(names), np.uint8)
    roles = np.zeros(len(names), np.uint16)
    for i in np.unique(used).tolist():
        name = names[i]
        index = _first_match(name, compiled)
        if index >= 0:
            family[i] = rules[index].family
            roles[i] = sum(category.role for category in rules[index].also) | _fused_roles(name, rules[index].family)
    return family, roles


def _fused_roles(name: str, family: Family) -> int:
    """Further roles that a fused kernel's own name spells out: an all-reduce with a norm, an append with rope."""
    lowered = name.lower()
    roles = 0
    if family in (Family.COMMUNICATION, Family.APPEND) and "norm" in lowered:
        roles |= Category.COMPUTE.role
    if family is Family.APPEND and "rope" in lowered:
        roles |= Category.COMPUTE.role
    if family is Family.ATTENTION and re.search(r"append|and_cache|store_kv", lowered):
        roles |= Category.KV_APPEND.role
    return roles


def _compiled(rules: Sequence[Rule]) -> list[re.Pattern[str]]:
    return [re.compile(rule.pattern, re.IGNORECASE) for rule in rules]


def _first_match(name: str, patterns: list[re.Pattern[str]]) -> int:
    # Template arguments repeat for kilobytes; what a kernel is stands in its first 2,000 characters.
    text = name[:2000]
    return next((i for i, pattern in enumerate(patterns) if pattern.search(text)), -1)
