"""Names to families: one row a kernel name as engines write it; the order of the rules is what is tested."""

import json

import pytest

from tracescope.core.category import Category
from tracescope.recognise.names.compiler_ops import family_by_compiler
from tracescope.recognise.names.kernel_rules import (
    CATEGORY_OF_FAMILY,
    KERNEL_RULES,
    OP_OF_FAMILY,
    OPERATOR_RULES,
    Family,
    classify,
    family_of,
)

NAMES = [
    ("Memcpy DtoH (Device -> Host)", Family.COPY),
    ("__amd_rocclr_copyBuffer", Family.COPY),
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Family.COMMUNICATION),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", Family.COMMUNICATION),
    ("allreduce_fusion_kernel_oneshot_lamport<rmsnorm>", Family.COMMUNICATION),
    ("void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16>", Family.APPEND),
    ("void (anonymous namespace)::store_kvcache<2048l, 4, false, long>", Family.APPEND),
    ("concat_and_cache_mla_rope_fused_kernel", Family.APPEND),
    ("fusedDeepseekV4QNormRopeKVRopeQuantInsertKernel", Family.APPEND),
    ("create_flashinfer_kv_indices_triton", Family.BOOKKEEPING),
    ("void (anonymous namespace)::clamp_position_kernel<long>", Family.BOOKKEEPING),
    ("_combined_routing_compute", Family.ROUTING),
    ("_sum_bitmatrix_rows", Family.ROUTING),
    ("void vllm::moe::topkGatingSoftmax<4, 128>", Family.ROUTING),
    ("_finalize_matmul_scatter_bf16", Family.ROUTING),
    ("cutlass::device_kernel<flash::FlashAttnFwdSm90<CollectiveMainloopFwd>>", Family.ATTENTION),
    ("fmhaSm100aKernel_QkvE4m3PagedKvSwapsAb", Family.ATTENTION),
    ("void paged_attention_ll4mi_QKV_mfma16_kernel<0, vllm::Fp8KVCacheDataType>", Family.ATTENTION),
    ("void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16>", Family.ATTENTION_PART),
    ("void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits>", Family.ATTENTION_PART),
    ("reduce_segments", Family.ATTENTION_PART),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", Family.EXPERTS),
    ("fused_moe_kernel", Family.EXPERTS),
    ("void rotary_embedding_kernel<c10::BFloat16, true>", Family.ROPE),
    ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2d", Family.NORM),
    ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16b", Family.NORM),
    ("_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16", Family.ACT),
    (
        "at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>",
        Family.SAMPLE,
    ),
    ("void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024>", Family.SAMPLE),
    ("_gumbel_sample_kernel", Family.SAMPLE),
    ("void softmax_warp_forward<float, float, float, 10, false, false>", Family.RANKING),
    ("upsample_nearest2d_out_frame", Family.ELEMENTWISE),
    ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", Family.GEMM),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256", Family.GEMM),
    ("marlin::Marlin<__nv_bfloat16, 256>", Family.GEMM),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float>", Family.GEMM_PART),
    ("void at::native::vectorized_gather_kernel<16, long>", Family.EMBED),
    ("triton_poi_fused_constant_pad_nd_moe_forward_0", Family.ELEMENTWISE),
    ("triton_poi_fused_convolution_backward_3", Family.ELEMENTWISE),
    ("triton_tem_fused_addmm_7", Family.GEMM),
    ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>", Family.NORM),
    ("MIOpenBatchNormFwdTrainSpatialNorm", Family.NORM),
    ("void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>", Family.NORM),
    ("void cuComputePartGradGammaBeta<float, float, true>", Family.NORM),
    ("volta_scudnn_128x64_relu_interior_nn_v1", Family.GEMM),
    ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>", Family.GEMM),
    ("void wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>", Family.GEMM),
    ("void cudnn::cnn::reduce_wgrad_nchw_helper<float, float>", Family.GEMM_PART),
    ("void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>", Family.GEMM_PART),
    ("cask_cudnn_infer::computeBOffsetsKernel", Family.BOOKKEEPING),
    ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>", Family.ELEMENTWISE),
    ("max_pool_backward_nchw", Family.ELEMENTWISE),
    ("SubTensorOpWithCastTensor1d", Family.ELEMENTWISE),
    ("void cunn_ClassNLLCriterion_updateOutput_kernel<float, float>", Family.ELEMENTWISE),
    ("void mmha::masked_multihead_attention_kernel<unsigned short>", Family.ATTENTION),
    ("void mul_mat_vec_q<(ggml_type)12, 1>", Family.GEMM),
    ("k_bin_bcast", Family.ELEMENTWISE),
    ("dma_request", Family.COPY),
    ("event_wait", Family.WAIT),
    ("CUDA graph 12", Family.GRAPH),
    ("pe_exe", Family.ELEMENTWISE),
    ("kernel_cake_9f81b2", Family.NONE),
    # A word inside another word.
    ("void fbgemm_gpu::permute_2D_data_kernel<false, int, int, decltype(nullptr)>", Family.ELEMENTWISE),
    ("void fbgemm_gpu::_block_bucketize_sparse_features_cuda_kernel2<false>", Family.BOOKKEEPING),
    ("void fbgemm_gpu::(anonymous namespace)::_FP8rowwise_to_float_cuda_kernel<float>", Family.QUANT),
    ("_ZN10fbgemm_gpu14jagged_2d_kernelIfEEvPKf", Family.ELEMENTWISE),
    ("void fbgemm_gpu::f8f8bf16_rowwise::gemm_kernel<128>", Family.GEMM),
    ("gemma_attention_bias_add", Family.NONE),
    ("void cutlass_gemmhalf_kernel", Family.GEMM),
    ("fp8_conversion_kernel", Family.NONE),
    ("quantile_kernel", Family.NONE),
    ("void at::native::(anonymous namespace)::grid_sampler_2d_kernel<float>", Family.ELEMENTWISE),
    ("_fwd_kernel_stage2", Family.ATTENTION_PART),
    ("reduce_stage2_kernel", Family.NONE),
    ("ck_moe_stage2_gemm", Family.EXPERTS),
    ("moe_combine_kernel", Family.ROUTING),
    ("tbe_input_combine_with_length_kernel", Family.NONE),
    ("_fwd_splitkv_combine", Family.ATTENTION_PART),
    ("convex_hull_kernel", Family.NONE),
    # Names that had no rule.
    ("void bounds_check_indices_kernel<long, false>", Family.BOOKKEEPING),
    ("compute_position_kernel", Family.BOOKKEEPING),
    ("_copy_page_indices_kernel", Family.BOOKKEEPING),
    ("sage_fwd", Family.ATTENTION),
    ("void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<128>", Family.BACKWARD),
    ("bwd_kernel_fuse", Family.BACKWARD),
    ("bwd_preprocess", Family.BACKWARD),
    ("bwd_kernel_dk_dv", Family.BACKWARD),
    ("void fft2d_r2c_32x32<float, false, 0u, false>(float2*)", Family.GEMM_PART),
    ("void flip_filter<float, float>(float*, float const*)", Family.GEMM_PART),
    ("void regular_fft_factor<512u, 4u>", Family.ELEMENTWISE),
    # Other accelerators.
    ("fc-dtype_Float", Family.GEMM),
    ("bmm-dtype_Half", Family.GEMM),
    ("tbe_forward-dtype_Float", Family.EMBED),
    ("layer_norm-dtype_Half", Family.NORM),
    ("add-dtype_Float", Family.ELEMENTWISE),
    ("aclnnMatmul_MatMulV2_MatMulV2", Family.GEMM),
    ("aclnnQuantMatmulV4_QuantBatchMatmulV3_QuantBatchMatmulV3", Family.GEMM),
    ("aclnnGroupedMatmulV4_GroupedMatmul_GroupedMatmul", Family.EXPERTS),
    ("aclnnMoeGatingTopKSoftmax_MoeGatingTopKSoftmax", Family.ROUTING),
    ("aclnnScatterPaKvCache_ScatterPaKvCache", Family.APPEND),
    ("aclnnApplyRotaryPosEmb_ApplyRotaryPosEmb", Family.ROPE),
    ("aclnnSwiGlu_SwiGlu_SwiGlu", Family.ACT),
    ("aclnnAddRmsNorm_AddRmsNorm_AddRmsNorm", Family.NORM),
    ("aclnnArgMax_ArgMaxV2_ArgMaxV2", Family.SAMPLE),
    ("aclnnInplaceMul_MulAiCore_Mul", Family.ELEMENTWISE),
    ("hcom_allReduce__613_0_1", Family.COMMUNICATION),
    ("hcom_broadcast_", Family.COMMUNICATION),
    ("MatMulV3", Family.GEMM),
    ("RealDiv", Family.ELEMENTWISE),
    ("ReduceSumD", Family.ELEMENTWISE),
    ("NOTIFY_WAIT", Family.WAIT),
    # A compiler's fusions: by what their names hold.
    ("fusion.12", Family.ELEMENTWISE),
    ("loop_add_multiply_fusion.3", Family.ELEMENTWISE),
    ("input_reduce_fusion", Family.ELEMENTWISE),
    ("convolution_add_fusion.7", Family.GEMM),
    ("gemm_fusion_dot_12", Family.GEMM),
    ("loop_dynamic_update_slice_fusion", Family.APPEND),
    ("all-gather-start.2", Family.COMMUNICATION),
    ("copy-done.5", Family.COPY),
    ("sort.4", Family.RANKING),
    ("reduce-window.1", Family.ELEMENTWISE),
    ("custom-call.3", Family.NONE),
]


@pytest.mark.parametrize(("name", "family"), NAMES, ids=[n[:40] for n, _ in NAMES])
def test_a_kernel_name_finds_its_family(name: str, family: Family) -> None:
    assert family_of(name) is family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten::linear", Family.GEMM),
        ("aten::scaled_dot_product_attention", Family.ATTENTION),
        ("aten::index_copy_", Family.APPEND),
        ("aten::_fused_rms_norm", Family.NORM),
        ("aten::multinomial", Family.SAMPLE),
        ("aten::as_strided", Family.ELEMENTWISE),
        ("aten::convolution_backward", Family.GEMM),
        ("aten::_scaled_dot_product_flash_attention_backward", Family.BACKWARD),
        ("fbgemm::permute_2D_sparse_data", Family.NONE),
        ("Torch-Compiled Region: 0/1", Family.NONE),
    ],
)
def test_an_operator_name_finds_its_family(name: str, family: Family) -> None:
    assert family_of(name, OPERATOR_RULES) is family


def test_a_fused_kernel_keeps_every_role_that_its_name_spells_out() -> None:
    names = ["concat_and_cache_mla_rope_fused_kernel", "allreduce_fusion_kernel_rmsnorm", "reshape_and_cache"]
    _, roles = classify(names, range(3), KERNEL_RULES)  # any indices do
    assert [bool(r & Category.COMPUTE.role) for r in roles.tolist()] == [True, True, False]


@pytest.mark.parametrize(
    ("category", "family"),
    [
        ("convolution fusion", Family.GEMM),
        ("loop fusion", Family.ELEMENTWISE),
        ("data formatting", Family.ELEMENTWISE),
        ("all-reduce", Family.COMMUNICATION),
        ("async copy-start", Family.COPY),
        ("sort", Family.RANKING),
        ("custom-call", Family.NONE),
        ("while", Family.NONE),
        ("", Family.NONE),
    ],
)
def test_a_compiler_says_what_kind_of_op_it_made(category: str, family: Family) -> None:
    assert family_by_compiler(json.dumps({"hlo_category": category})) is family


@pytest.mark.parametrize("detail", ["", "[]", '{"hlo_category": 7}', '{"hlo_category": "loop', '{"tf_op": "dot"}'])
def test_a_category_that_is_none_says_nothing(detail: str) -> None:
    assert family_by_compiler(detail) is Family.NONE


def test_no_pattern_stands_twice_and_every_family_has_an_op_and_a_category() -> None:
    for rules in (KERNEL_RULES, OPERATOR_RULES):
        patterns = [rule.pattern for rule in rules]
        assert len(set(patterns)) == len(patterns)
    assert set(OP_OF_FAMILY) == set(CATEGORY_OF_FAMILY) == set(Family)
