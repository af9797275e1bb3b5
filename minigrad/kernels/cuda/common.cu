// What all kernels share. `real`, float or double, is defined before this text; nothing is included.

typedef long long Int;
typedef unsigned int Bits;

#define INFINITE ((real)__int_as_float(0x7f800000))
#define WARP 32

// Every element i below n once, whatever the size of the grid. Unrolled it would be no faster, and slow to compile.
#define EACH(i, n)         \
    _Pragma("unroll 1")    \
    for (Int i = blockIdx.x * (Int)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (Int)blockDim.x)

// Every row once, each by a whole block; the columns of a row, shared out among the block's threads.
#define EACH_ROW(row, rows) for (Int row = blockIdx.x; row < rows; row += gridDim.x)
#define EACH_COLUMN(j, width) for (Int j = threadIdx.x; j < width; j += blockDim.x)

template <bool is_sum>
__device__ real combined(real a, real b) {
    return is_sum ? a + b : fmax(a, b);
}

// The sum or the largest of every thread's value, given to each thread. All threads of the block must call it.
// The order is fixed, so the same numbers give the same sum every time.
template <bool is_sum>
__device__ real over_block(real value) {
    __shared__ real parts[WARP];
    for (int step = WARP / 2; step > 0; step /= 2)
        value = combined<is_sum>(value, __shfl_xor_sync(0xffffffffu, value, step));
    __syncthreads();  // what was in `parts` before has been read by all
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < (int)blockDim.x / WARP; i++) value = combined<is_sum>(value, parts[i]);
    return value;
}

__device__ real block_sum(real value) { return over_block<true>(value); }
__device__ real block_max(real value) { return over_block<false>(value); }

// random.py: 32 random bits for an element's number, by a key of two halves.
__device__ Bits mixed(Bits x, Bits half) {
    x ^= half;
    x ^= x >> 16;
    x *= 0x21F0AAADu;
    x ^= x >> 15;
    x *= 0x735A2D97u;
    return x ^ x >> 15;
}

// 0, or the factor that makes up for the zeros; the same as definitions.py's _dropout_factors, bit for bit.
__device__ real dropout_factor(Int number, Int threshold, double factor, Int low, Int high) {
    return mixed(mixed((Bits)number, (Bits)low), (Bits)high) >= (Bits)threshold ? (real)factor : (real)0;
}
