"""What NumPy, PyTorch and JAX call what is here, and why the rest is not: the source of hints and of docs/coverage.md.

`python -m docs.coverage` compares it with the public names of these libraries; one in neither table fails it. It is loaded
when a name is missing, or when that command runs.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

__all__ = ["CALLED", "REFUSED", "hint", "refused"]

ARRAYS, FUNCTIONS, LAYERS, OPTIMISERS = "arrays", "functions", "layers", "optimisers"
TENSORS, AUTOGRAD, INITIALISERS, DATA, UTILITIES, RANDOM, MODULES = (
    "tensors",
    "autograd",
    "initialisers",
    "data",
    "utilities",
    "random",
    "modules",
)

# By the kind of module: foreign name -> what to write here.
_CALLED = {
    ARRAYS: """
        absolute: abs, fabs: abs, acos: arccos, acosh: arccosh, asin: arcsin, asinh: arcsinh, atan: arctan, atanh: arctanh,
        atan2: arctan2, pow: ** or power, mul: * or multiply, sub: - or subtract, rsub: - or subtract, div: / or divide,
        true_divide: / or divide, neg: - or negative, mm: @ or matmul, bmm: @ or matmul, mv: @ or matmul, ger: outer,
        chain_matmul: linalg.multi_dot, adjoint: x.mT, eq: ==, ne: !=, gt: >, ge: >=, lt: <, le: <=, mod: remainder or %, rint: round,
        around: round, clamp: clip, clamp_min: maximum, clamp_max: minimum, amax: max, amin: min, aminmax: min and max, numel: x.size,
        bitwise_not: bitwise_invert or ~, invert: bitwise_invert or ~, cat: concatenate, concat: concatenate, row_stack: vstack,
        block: concatenate, chunk: split, tensor_split: array_split, unsafe_chunk: split,
        unsafe_split: split, left_shift: bitwise_left_shift, right_shift: bitwise_right_shift, split_with_sizes: split,
        unsafe_split_with_sizes: split, unbind: unstack, view: reshape, permute: transpose or permute_dims, t: x.T, unsqueeze: expand_dims,
        movedim: moveaxis, rollaxis: moveaxis, swapdims: swapaxes, narrow: x[start:stop], select: x[…, i] or where, expand: broadcast_to,
        repeat_interleave: repeat, range: arange, take_along_dim: take_along_axis,
        index_select: take, kthvalue: sort, msort: sort(axis=0), array: tensor, asarray: tensor, as_tensor: tensor, asanyarray: tensor,
        from_numpy: tensor, scalar_tensor: tensor, ascontiguousarray: clone, require: tensor, asarray_chkfinite: tensor, copy: clone,
        contiguous: clone, type: astype, double: float64 or astype('float64'), single: float32, half: float16 or astype('float16'),
        float: float32 or astype('float32'), long: int64 or astype('int64'), int: int32 or astype('int32'), short: int16, bool: bool_,
        int_: int64, intp: int64, intc: int32, longlong: int64, byte: int8, ubyte: uint8, degrees: rad2deg, radians: deg2rad,
        std_mean: std and mean, var_mean: var and mean, inverse: inv, pinverse: pinv, trapz: trapezoid, identity: eye,
        triangular_solve: linalg.solve_triangular, orgqr: qr, geqrf: qr, nuclear_norm: norm(ord='nuc'), frobenius_norm: norm,
        norm_except_dim: norm, dist: norm(x - y), vdot: vecdot, convolution: nn.functional.conv2d, addmm: x + a @ b, addmv: x + a @ v,
        addbmm: x + (a @ b).sum(0), baddbmm: x + a @ b, addr: x + outer(a, b), addcmul: x + value * a * b, addcdiv: x + value * a / b,
        set_grad_enabled: no_grad or enable_grad, inference_mode: no_grad, seed: manual_seed, initial_seed: manual_seed, vectorize: vmap,
        sgn: sign, is_tensor: isinstance(x, mg.Tensor), is_floating_point: x.dtype.kind == 'f', is_nonzero: bool(x),
        is_complex: x.dtype.kind == 'c', select_scatter: x[i] = y, slice_scatter: x[a:b] = y, diagonal_scatter: x[i, i] = y,
        as_strided_scatter: x[i] = y, put: x.reshape(-1)[i] = y, index_put_: x[i] = y, fill: full_like,
        set_num_threads: the variable MINIGRAD_THREADS, get_num_threads: the variable MINIGRAD_THREADS, compress: x[mask],
        extract: x[mask], choose: take_along_axis, ix_: x[i[:, None], j], set_anomaly_enabled: debug, is_anomaly_enabled: debug,
        GradScaler: optim.MixedPrecision, autocast: optim.MixedPrecision, result_type: numpy.result_type,
        promote_types: numpy.promote_types, can_cast: numpy.can_cast, isdtype: numpy.isdtype, issubdtype: numpy.issubdtype,
        broadcast_shapes: numpy.broadcast_shapes, finfo: numpy.finfo, iinfo: numpy.iinfo, broadcast_tensors: broadcast_to,
        matvec: @ or matmul, vecmat: @ or matmul, ptp: x.max() - x.min(),
        argwhere: stack(nonzero(x), axis=-1), flatnonzero: nonzero(x.reshape(-1))[0], tri: tril(ones(n, n)),
        randint_like: randint(low, high, x.shape), logspace: base ** linspace(a, b, n), geomspace: exp(linspace(log(a), log(b), n)),
        convolve: nn.functional.conv1d, correlate: nn.functional.conv1d, nanquantile: quantile(x[~isnan(x)], q),
        nanpercentile: percentile(x[~isnan(x)], q), gradient: diff; the derivative of a function is mg.grad,
        unique_all: unique(return_index=True, return_inverse=True, return_counts=True), unique_counts: unique(return_counts=True),
        unique_inverse: unique(return_inverse=True), unique_values: unique, jit: compile, pmap: train, under mpiexec,
        cuda: x.to('cuda'), device_put: x.to(device), device_get: x.numpy(),
        numpy: minigrad itself, as mg.sin, jnp: minigrad itself, as mg.sin, func: minigrad itself, as mg.vmap,
        functional: nn.functional, lax: Python's own loops and branches, scan: a loop in Python,
        while_loop: a loop in Python, fori_loop: a loop in Python, tree_map: tree.map, tree_util: tree, utils: data and nn.utils,
        checkpoint: recompute, remat: recompute, stop_gradient: x.detach(), Variable: tensor(…, requires_grad=True),
        FloatTensor: tensor, LongTensor: tensor(…, dtype='int64'), distributed: train, under mpiexec,
        special: minigrad itself, as mg.erf, amp: optim.MixedPrecision, profiler: python -m cProfile, testing: numpy.testing, and mg.check,
        distributions: normal, uniform, bernoulli or multinomial, version: __version__,
        histc: histogram, get_rng_state: random.random_state, set_rng_state: random.restore_random_state, psi: digamma, gammaln: lgamma,
        expit: sigmoid, logistic: sigmoid, stft: fft.stft, to_dlpack: the tensor itself, which has __dlpack__
    """,
    TENSORS: """
        bool: astype('bool'), byte: astype('uint8'), short: astype('int16'),
        at: x[i] = y, or index_put, which copies, values: max(axis=…) for values, argmax(axis=…) for positions,
        indices: argmax, argsort, or the second result of topk, expand_as: broadcast_to(y.shape), view_as: reshape(y.shape),
        reshape_as: reshape(y.shape), type_as: astype(y.dtype), new_zeros: mg.zeros(…, dtype=x.dtype),
        new_ones: mg.ones(…, dtype=x.dtype), new_full: mg.full(…, dtype=x.dtype), new_empty: mg.empty(…, dtype=x.dtype),
        new_tensor: mg.tensor(…, dtype=x.dtype), is_cuda: x.device != 'cpu', is_cpu: x.device == 'cpu', get_device: device,
        itemsize: x.dtype.itemsize, element_size: x.dtype.itemsize, nelement: size, ndimension: ndim, stride: x.data.strides,
        strides: x.data.strides, flags: x.data.flags, is_contiguous: x.data.flags.c_contiguous, flat: reshape(-1),
        base: x.data.base, data_ptr: x.data.ctypes.data, tobytes: x.numpy().tobytes(), tofile: mg.save, dump: mg.save,
        block_until_ready: nothing; results are there at once, unfold: nn.functional.unfold, prelu: nn.functional.prelu,
        hardshrink: nn.functional.hardshrink, mH: mT, H: T, conjugate: conj,
        allclose: mg.allclose(x, y), bernoulli: mg.bernoulli(x), multinomial: mg.multinomial(x, n), partition: sort,
        argpartition: argsort or topk, char: astype('int8'), fill: x[...] = value,
        register_post_accumulate_grad_hook: register_hook, retains_grad: retain_grad()
    """,
    FUNCTIONS: """
        multi_head_attention_forward: nn.MultiHeadAttention, linear_cross_entropy: cross_entropy(linear(…)),
        upsample_nearest: interpolate(mode='nearest'), upsample_bilinear: interpolate(mode='bilinear', align_corners=True),
        max_pool1d_with_indices: max_pool1d(return_indices=True), max_pool2d_with_indices: max_pool2d(return_indices=True),
        max_pool3d_with_indices: max_pool3d(return_indices=True), swish: silu, bce: binary_cross_entropy, mse: mse_loss,
        dense: linear, attention: scaled_dot_product_attention,
        adaptive_max_pool1d_with_indices: adaptive_max_pool1d(return_indices=True),
        adaptive_max_pool2d_with_indices: adaptive_max_pool2d(return_indices=True),
        adaptive_max_pool3d_with_indices: adaptive_max_pool3d(return_indices=True), native_channel_shuffle: channel_shuffle
    """,
    LAYERS: """
        TransformerEncoder: Encoder, TransformerDecoder: Decoder, TransformerEncoderLayer: TransformerBlock,
        TransformerDecoderLayer: TransformerBlock(…, cross=True), Transformer: Encoder and Decoder,
        MultiheadAttention: MultiHeadAttention, LinearCrossEntropyLoss: CrossEntropyLoss, NLLLoss2d: NLLLoss, Container: Module,
        Buffer: register_buffer, CrossMapLRN2d: LocalResponseNorm, Dense: Linear, Conv: Conv1d, Conv2d or Conv3d, Embed: Embedding,
        Attention: MultiHeadAttention, Swish: SiLU
    """,
    OPTIMISERS: """
        GradScaler: MixedPrecision, apply_updates: the optimiser's step(), clip_by_global_norm: nn.utils.clip_grad_norm_,
        chain: one optimiser, and clipping by nn.utils.clip_grad_norm_
    """,
    AUTOGRAD: """
        backward: x.backward(), no_grad: mg.no_grad, enable_grad: mg.enable_grad, set_grad_enabled: mg.no_grad or mg.enable_grad,
        inference_mode: mg.no_grad, Function: mg.op, or mg.custom_vjp for a function made of ops, gradcheck: mg.check.gradcheck,
        gradgradcheck: mg.check.gradcheck(order=2), functional: mg.jacobian, mg.hessian, mg.jvp and mg.vjp, jacobian: mg.jacobian,
        hessian: mg.hessian, jvp: mg.jvp, vjp: mg.vjp, hvp: mg.hvp, Variable: mg.tensor(…, requires_grad=True),
        variable: mg.tensor(…, requires_grad=True), detect_anomaly: mg.debug(), set_detect_anomaly: mg.debug(),
        anomaly_mode: mg.debug(), value_and_grad: mg.value_and_grad, checkpoint: mg.recompute, graph: mg.viz.graph,
        profiler: python -m cProfile
    """,
    INITIALISERS: """
        glorot_uniform: xavier_uniform_, glorot_normal: xavier_normal_, glorot_uniform_: xavier_uniform_,
        glorot_normal_: xavier_normal_, he_uniform: he_uniform_, he_normal: he_normal_, zeros: zeros_, ones: ones_,
        truncated_normal: trunc_normal_, xavier_uniform: xavier_uniform_, xavier_normal: xavier_normal_,
        kaiming_uniform: kaiming_uniform_, kaiming_normal: kaiming_normal_, normal: normal_, uniform: uniform_,
        constant: constant_, orthogonal: orthogonal_, eye: eye_, dirac: dirac_,
        lecun_normal: kaiming_normal_(nonlinearity='linear'), lecun_uniform: kaiming_uniform_(nonlinearity='linear'),
        variance_scaling: kaiming_normal_ or xavier_normal_
    """,
    DATA: """
        DistributedSampler: nothing; the Trainer shares the rows of a batch among ranks, distributed: mg.train, under mpiexec,
        get_worker_info: nothing; workers are threads of one process, ChainDataset: ConcatDataset, or one IterableDataset,
        StackDataset: TensorDataset, collate: default_collate
    """,
    MODULES: """
        add_module: module.name = part, register_module: module.name = part, register_parameter: module.name = nn.Parameter(…),
        get_parameter: dict(module.named_parameters())[name], get_submodule: dict(module.named_modules())[name],
        get_buffer: dict(module.named_buffers())[name], set_submodule: module.name = part, type: to(dtype), to_empty: to(device),
        compile: mg.compile(module), half: to("float16"),
        float: to("float32"), double: to("float64"), cuda: to("cuda"), cpu: to("cpu"), register_backward_hook: register_full_backward_hook,
        bfloat16: to("float16")
    """,
    UTILITIES: """
        clip_grad_norm: clip_grad_norm_, clip_grad_value: clip_grad_value_, parametrizations: weight_norm and spectral_norm,
        parametrize: weight_norm and spectral_norm, get_total_norm: clip_grad_norm_(parameters, math.inf),
        stateless: nn.functional_call
    """,
    RANDOM: """
        manual_seed: mg.manual_seed, initial_seed: mg.manual_seed, fork_rng: mg.random.random_state and restore_random_state,
        get_rng_state: mg.random.random_state, set_rng_state: mg.random.restore_random_state,
        sample: mg.rand, random_sample: mg.rand, multinomial: mg.multinomial,
        normal: mg.randn, or mg.normal(mean, std), standard_normal: mg.randn, randn: mg.randn, rand: mg.rand, random: mg.rand,
        uniform: mg.rand or mg.uniform, randint: mg.randint, integers: mg.randint, seed: mg.manual_seed,
        default_rng: mg.manual_seed, PRNGKey: mg.manual_seed, key: mg.manual_seed, split: nothing; there is one source of numbers,
        permutation: mg.randperm, shuffle: x[mg.randperm(len(x))], choice: mg.randint, or mg.multinomial(p, n),
        bernoulli: mg.bernoulli, categorical: mg.multinomial, get_state: mg.random.random_state,
        set_state: mg.random.restore_random_state
    """,
}

# Why names are not here, and the names; `*` stands for anything.
REFUSED: dict[str, tuple[str, str]] = {
    "copies of views": (
        "PyTorch's internal copies of views: take the view and clone() it",
        """
        *_copy
        """,
    ),
    "scalar types": (
        "types of NumPy's hierarchy, of text, dates and numbers that minigrad does not have: dtypes are NumPy's own objects",
        """
        False_ True_ ScalarType bytes_ str_ void object_ character flexible generic number inexact floating complexfloating integer
        signedinteger unsignedinteger datetime64 timedelta64 longdouble clongdouble cdouble csingle float128 complex256 complex64
        complex128 cfloat chalf complex32 uint uint16 uint32 uint64 uintc uintp ulong ulonglong ushort long typecodes sctypeDict typename
        mintypecode common_type min_scalar_type bfloat16 float4_* float6_* float8_* int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3
        uint4 uint5 uint6 uint7 bit bits* float_ complex_ dtype DType
        """,
    ),
    "complex numbers": (
        "complex tensors have values but no derivative, so these stay with NumPy: np.angle(x.numpy())",
        """
        eig eigvals angle real imag conj conjugate conj_physical resolve_conj resolve_neg is_conj is_neg polar complex view_as_complex view_as_real
        iscomplex iscomplexobj isreal isrealobj real_if_close sort_complex istft ComplexWarning
        """,
    ),
    "printing, text and files": (
        "text, printing and files of NumPy's: print(x), mg.save, mg.load, or the NumPy function on x.numpy()",
        """
        array2string array_repr array_str base_repr binary_repr format_float_* get_printoptions set_printoptions printoptions fromfile
        from_file fromregex fromstring genfromtxt loadtxt savetxt savez savez_compressed frombuffer memmap datetime_* info show_config
        show_runtime get_include little_endian test
        """,
    ),
    "NumPy's machinery": (
        "iterators, error states, ufuncs, buffers and classes of NumPy's own: use NumPy's",
        """
        nditer nested_iters ndenumerate ndindex flatiter broadcast iterable ufunc frompyfunc errstate geterr seterr geterrcall seterrcall
        getbufsize setbufsize ndarray matrix asmatrix bmat recarray record may_share_memory shares_memory isfortran asfortranarray
        isscalar einsum_path fromfunction fromiter
        """,
    ),
    "index builders": (
        "objects that build indices or grids of numbers from slices: write the index, or use arange, meshgrid, linspace",
        """
        c_ r_ s_ ravel_multi_index unravel_index index_exp mgrid ogrid mask_indices diag_indices diag_indices_from tril_indices_from
        triu_indices_from indices
        """,
    ),
    "distributions": (
        "distributions that NumPy draws from: mg.tensor(numpy.random.default_rng().exponential(…))",
        """
        beta chisquare dirichlet exponential gamma geometric gumbel hypergeometric laplace logistic lognormal logseries
        multivariate_normal negative_binomial pareto rayleigh standard_cauchy standard_exponential standard_gamma standard_t triangular
        vonmises wald weibull zipf
        """,
    ),
    "calendars": (
        "calendars and dates",
        """
        busday* is_busday isnat
        """,
    ),
    "polynomials": (
        "polynomials: numpy.polynomial has the maintained ones",
        """
        poly poly1d polyadd polyval polyder polydiv polyfit polyint polymul polysub roots
        """,
    ),
    "signal windows": (
        "windows depend on a length alone: mg.tensor(np.hamming(n))",
        """
        bartlett* blackman* hamming* hanning hann_window kaiser*
        """,
    ),
    "packed bits": (
        "packed bits: numpy has them",
        """
        packbits unpackbits bitwise_count frexp ldexp spacing nextafter
        """,
    ),
    "changing sizes": (
        "their result is built by concatenate and slices, which say what is meant",
        """
        delete insert trim_zeros apply_over_axes piecewise
        """,
    ),
    "histograms of several variables": (
        "histograms of several variables: numpy has them",
        """
        histogram2d histogramdd histogram_bin_edges hash_tensor
        """,
    ),
    "sparse tensors": (
        "sparse tensors",
        """
        sparse_* *smm *spmm saddmm sspaddmm hspmm ccol_indices* col_indices* crow_indices* row_indices* indices_copy values_copy
        resize_as_sparse_ SparseAdam
        """,
    ),
    "quantised tensors": (
        "quantised tensors of PyTorch's own kind: nn.quant has quantised layers",
        """
        q_* qint* quint* qscheme quantize* quantized_* dequantize fake_quantize* fused_moving_avg* int_repr choose_qparams*
        empty_quantized fbgemm_* scaled_mm scaled_grouped_mm grouped_mm ScalingType SwizzleType
        """,
    ),
    "libraries below PyTorch": (
        "single kernels of cuDNN, MIOpen and oneDNN, and of PyTorch's insides",
        """
        cudnn_* miopen_* mkldnn_* native_* batch_norm_* has_* conv_tbc *_grid_sampler* grid_sampler* affine_grid_generator constant_pad_nd
        max_pool1d_with_indices slice_inverse feature_dropout embedding_renorm_ boolean_dispatch handle_torch_function assert_int_or_pair
        factory_kwargs thread_safe_generator
        """,
    ),
    "TorchScript and its compiler": (
        "TorchScript, symbolic sizes and the types of its graphs: mg.compile traces instead",
        """
        *Type Script* *Storage* Graph* Code Block Node Value Use Argument* Compil* Complete* Concrete* Call* Capsule Deserial* Serial*
        Dispatch* Exclude* Execution* FileCheck FatalError ErrorReport FunctionSchema Future IODescriptor JITException LiteScriptModule
        LockingLogger NoopLogger OperatorInfo PyTorchFile* StaticModule Sym* sym_* Tag Throughput* TracingState AliasDb Aggregation* AVG
        SUM Benchmark* BufferDict DeepCopyMemoTable DisableTorchFunction* Gradient ModuleDict ParameterDict import_ir* parse_* merge_type*
        unify_type* fork wait Size cond compiled_with_cxx11_abi
        """,
    ),
    "devices and settings": (
        "streams, devices, determinism and precision of PyTorch's runtime: x.to(device), the variables MINIGRAD_THREADS and MINIGRAD_KERNELS",
        """
        Stream* Event DeviceObjType AcceleratorError OutOfMemoryError Generator default_generator *autocast* *deterministic*
        get_default_device set_default_device get_device* get_float32_matmul_precision set_float32_matmul_precision
        get_num_interop_threads set_num_interop_threads init_num_threads set_flush_denormal backends
        set_default_tensor_type set_warn_always is_warn_always_enabled is_vulkan_available is_distributed is_inference* is_anomaly_check*
        is_same_size is_signed is_storage layout memory_format *Tensor empty_permuted empty_strided as_strided DataParallel SyncBatchNorm
        swap_in_optimizer_params_and_state
        """,
    ),
    "layers without sizes": (
        "layers that wait for their sizes: give the sizes",
        """
        Lazy* Uninitialized*
        """,
    ),
    "parts of recurrent networks": (
        "nn.RNN, nn.GRU and nn.LSTM are layers, and nn.RNNCell and its like single steps",
        """
        gru* lstm* rnn_* RNNBase RNNCellBase
        """,
    ),
    "rare": (
        "rarely used, and not here: say so if you need it",
        """
        AdaptiveLogSoftmaxWithLoss unwrap euler_gamma FractionalMaxPool* fractional_max_pool* lobpcg ormqr lu_unpack cholesky_inverse
        igamma igammac mvlgamma i0 i0_ mode binomial poisson renorm combinations cartesian_prod nonzero_static unique_consecutive
        index_reduce LinearCrossEntropyOptions apply_along_axis lexsort argpartition partition pdist
        """,
    ),
    "in place": (
        "functions that write in place under a name of their own: write x[...] = f(x), x += y or x[i] = y",
        """
        *_ copyto putmask place fill_diagonal fill_ zero_ resize resize_as_ put_
        """,
    ),
}


def _pairs(text: str) -> dict[str, str]:
    """`"a: b, c: d(x, y)"` as a dict: a comma ends an entry only where a name and a colon follow it."""
    entries = re.split(r",\s+(?=\w+: )", " ".join(text.split()))
    return dict(entry.rstrip(",").split(": ", 1) for entry in entries)


CALLED: dict[str, dict[str, str]] = {kind: _pairs(text) for kind, text in _CALLED.items()}


def hint(kind: str, name: str) -> str | None:
    """What to write in place of a foreign name, or why it is not here; None where nobody else has the name either."""
    for table in (kind, ARRAYS) if kind == TENSORS else (kind,):
        if called := CALLED.get(table, {}).get(name):
            reason = called.removeprefix("nothing; ")
            return f"minigrad calls it {called}" if reason == called else f"it is not needed: {reason}"
    group = refused(name) if kind else None
    return None if group is None else f"it is not offered: {REFUSED[group][0]}"


def refused(name: str) -> str | None:
    """The group that a name which is not here belongs to, or None."""
    for group, (_, names) in REFUSED.items():
        if any(fnmatchcase(name, pattern) for pattern in names.split()):
            return group
    return None
