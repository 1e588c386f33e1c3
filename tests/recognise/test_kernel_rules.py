"""Names to families: one row a kernel name as engines write it; the order of the rules is what is tested."""

import pytest

from tracescope.core.category import Category
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
        ("Torch-Compiled Region: 0/1", Family.NONE),
    ],
)
def test_an_operator_name_finds_its_family(name: str, family: Family) -> None:
    assert family_of(name, OPERATOR_RULES) is family


def test_a_fused_kernel_keeps_every_role_that_its_name_spells_out() -> None:
    names = ["concat_and_cache_mla_rope_fused_kernel", "allreduce_fusion_kernel_rmsnorm", "reshape_and_cache"]
    _, roles = classify(names, range(3), KERNEL_RULES)  # type: ignore[arg-type]  # any indices do
    assert [bool(r & Category.COMPUTE.role) for r in roles.tolist()] == [True, True, False]


def test_no_pattern_stands_twice_and_every_family_has_an_op_and_a_category() -> None:
    for rules in (KERNEL_RULES, OPERATOR_RULES):
        patterns = [rule.pattern for rule in rules]
        assert len(set(patterns)) == len(patterns)
    assert set(OP_OF_FAMILY) == set(CATEGORY_OF_FAMILY) == set(Family)
