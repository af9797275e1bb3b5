// The fused operations whose elements do not depend on each other, and the gradient of a table of embeddings.

#define SLOPE ((real)1.5957691216057308)  // 2 sqrt(2 / pi)
#define CUBIC ((real)0.044715)
#define ROOT_HALF ((real)0.7071067811865476)
#define DENSITY ((real)0.3989422804014327)  // 1 / sqrt(2 pi)

// Without an exponential that overflows.
__device__ real sigmoid(real x) {
    real e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

__device__ real silu(real x) { return x * sigmoid(x); }

__device__ real silu_slope(real x) {
    real s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

// 0.5 x (1 + tanh(u)) is x sigmoid(2 u), which keeps its digits where tanh comes near to -1.
__device__ real gelu_tanh_share(real x) { return sigmoid(SLOPE * x * (1 + CUBIC * x * x)); }

__device__ real gelu_tanh(real x) { return x * gelu_tanh_share(x); }

__device__ real gelu_tanh_slope(real x) {
    real share = gelu_tanh_share(x);
    return share + x * share * (1 - share) * SLOPE * (1 + 3 * CUBIC * x * x);
}

__device__ real gelu_erf(real x) { return (real)0.5 * x * erfc(-ROOT_HALF * x); }

__device__ real gelu_erf_slope(real x) {
    return (real)0.5 * erfc(-ROOT_HALF * x) + x * DENSITY * exp((real)-0.5 * x * x);
}

extern "C" __global__ void silu_forward(const real* x, real* out, Int n) {
    EACH(i, n) out[i] = silu(x[i]);
}

extern "C" __global__ void silu_backward(const real* g, const real* x, real* out, Int n) {
    EACH(i, n) out[i] = g[i] * silu_slope(x[i]);
}

extern "C" __global__ void gelu_tanh_forward(const real* x, real* out, Int n) {
    EACH(i, n) out[i] = gelu_tanh(x[i]);
}

extern "C" __global__ void gelu_tanh_backward(const real* g, const real* x, real* out, Int n) {
    EACH(i, n) out[i] = g[i] * gelu_tanh_slope(x[i]);
}

extern "C" __global__ void gelu_none_forward(const real* x, real* out, Int n) {
    EACH(i, n) out[i] = gelu_erf(x[i]);
}

extern "C" __global__ void gelu_none_backward(const real* g, const real* x, real* out, Int n) {
    EACH(i, n) out[i] = g[i] * gelu_erf_slope(x[i]);
}

// x (rows, 2 half) -> out (rows, half), n = rows * half
extern "C" __global__ void swiglu_forward(const real* x, real* out, Int half, Int n) {
    EACH(i, n) {
        const real* gate = x + i / half * 2 * half + i % half;
        out[i] = silu(gate[0]) * gate[half];
    }
}

extern "C" __global__ void swiglu_backward(const real* g, const real* x, real* out, Int half, Int n) {
    EACH(i, n) {
        Int place = i / half * 2 * half + i % half;
        out[place] = g[i] * x[place + half] * silu_slope(x[place]);
        out[place + half] = g[i] * silu(x[place]);
    }
}

// Forward on x, and backward on g: the factors are found again rather than kept.
extern "C" __global__ void dropout(
    const real* x, real* out, Int threshold, double factor, Int low, Int high, Int start, Int n) {
    EACH(i, n) out[i] = x[i] * dropout_factor(start + i, threshold, factor, low, high);
}

extern "C" __global__ void add_bias(const real* bias, real* out, Int width, Int n) {
    EACH(i, n) out[i] += bias[i % width];
}

// The sum replaces the product in `inner`: the gradient wants it.
extern "C" __global__ void biased_gelu_tanh(const real* bias, real* inner, real* out, Int width, Int n) {
    EACH(i, n) out[i] = gelu_tanh(inner[i] += bias[i % width]);
}

extern "C" __global__ void biased_gelu_none(const real* bias, real* inner, real* out, Int width, Int n) {
    EACH(i, n) out[i] = gelu_erf(inner[i] += bias[i % width]);
}

// g (count, width); `order` sorts the numbers of the rows and `sorted` holds them in that order. The thread at the first
// of several equal numbers adds them all up, so that nothing is added to the same place twice.
extern "C" __global__ void embedding_backward(
    const real* g, const Int* sorted, const Int* order, real* out, Int padding, Int count, Int width,
    Int n) {
    EACH(i, n) {
        Int first = i / width, column = i % width, number = sorted[first];
        if (number == padding || (first > 0 && sorted[first - 1] == number)) continue;
        real total = 0;
        for (Int k = first; k < count && sorted[k] == number; k++) total += g[order[k] * width + column];
        out[number * width + column] = total;
    }
}
