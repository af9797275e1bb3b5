// What generated loops call. Nothing is included.

typedef float f4;
typedef double f8;
typedef int i4;
typedef long long i8;
typedef bool b1;

#define inf __int_as_float(0x7f800000)
#define nan __int_as_float(0x7fffffff)

namespace m {

#define FUNCTION(name, function)                           \
    __device__ f4 name(f4 a) { return ::function##f(a); }  \
    __device__ f8 name(f8 a) { return ::function(a); }
#define FUNCTION_OF_TWO(name, function)                              \
    __device__ f4 name(f4 a, f4 b) { return ::function##f(a, b); }  \
    __device__ f8 name(f8 a, f8 b) { return ::function(a, b); }

FUNCTION(abs, fabs)
FUNCTION(arccos, acos)
FUNCTION(arccosh, acosh)
FUNCTION(arcsin, asin)
FUNCTION(arcsinh, asinh)
FUNCTION(arctan, atan)
FUNCTION(arctanh, atanh)
FUNCTION(ceil, ceil)
FUNCTION(cos, cos)
FUNCTION(cosh, cosh)
FUNCTION(erf, erf)
FUNCTION(erfc, erfc)
FUNCTION(exp, exp)
FUNCTION(expm1, expm1)
FUNCTION(floor, floor)
FUNCTION(log, log)
FUNCTION(log10, log10)
FUNCTION(log1p, log1p)
FUNCTION(log2, log2)
FUNCTION(sin, sin)
FUNCTION(sinh, sinh)
FUNCTION(sqrt, sqrt)
FUNCTION(tan, tan)
FUNCTION(tanh, tanh)
FUNCTION(trunc, trunc)
FUNCTION_OF_TWO(arctan2, atan2)
FUNCTION_OF_TWO(hypot, hypot)
FUNCTION_OF_TWO(power, pow)

template <class T>
__device__ T abs(T a) {
    return a < 0 ? -a : a;
}

// Without an exponential that overflows.
template <class T>
__device__ T sigmoid(T a) {
    const T e = exp(-abs(a));
    return (a < 0 ? e : T(1)) / (1 + e);
}

// The share of the normal distribution below `a`, whose small values erfc does not lose.
template <class T>
__device__ T normal_cdf(T a) {
    return T(0.5) * erfc(a * T(-0.70710678118654752440));
}

// -1, 0 or 1; NaN stays.
template <class T>
__device__ T sign(T a) {
    return a != a ? a : T((a > 0) - (a < 0));
}

template <class T>
__device__ T select(b1 condition, T a, T b) {
    return condition ? a : b;
}

template <class T>
__device__ T plus(T a, T b) {
    return a + b;
}

template <class T>
__device__ T times(T a, T b) {
    return a * b;
}

// NaN if one is.
template <class T>
__device__ T maximum(T a, T b) {
    return a > b || a != a ? a : b;
}

template <class T>
__device__ T minimum(T a, T b) {
    return a < b || a != a ? a : b;
}

// Every thread's number joined, for each thread. All threads of the block must call it; the order is always the same.
template <class T, T (*joined)(T, T)>
__device__ T over_block(T value) {
    __shared__ T parts[32];
    for (int step = 16; step > 0; step /= 2) value = joined(value, __shfl_xor_sync(0xffffffffu, value, step));
    __syncthreads();  // what was in `parts` before has been read by all
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < (int)blockDim.x / 32; i++) value = joined(value, parts[i]);
    return value;
}

// A place along an axis from one that may count from the end; if there is none it is 0, and counted as wrong.
__device__ i8 index(i8 number, i8 size, i4* wrong, b1 counts) {
    const i8 place = number < 0 ? number + size : number;
    if (place >= 0 && place < size) return place;
    if (counts) atomicAdd(wrong, 1);
    return 0;
}

// 32 random bits for an element's number: minigrad.random.hashed, by one half of the key after the other.
typedef unsigned int bits;

__device__ bits mixed(bits x, bits half) {
    x ^= half;
    x ^= x >> 16;
    x *= 0x21F0AAADu;
    x ^= x >> 15;
    x *= 0x735A2D97u;
    return x ^ x >> 15;
}

// Whether dropout keeps an element. The threshold is a double's 32 bits, as everywhere, so that the same elements are dropped.
__device__ b1 kept(i8 element, f8 p, i8 key, i8 start) {
    const i8 share = i8(p * 4294967296.0), most = 0xFFFFFFFFll;
    return mixed(mixed(bits(start + element), bits(key)), bits(key >> 32)) >= bits(share < most ? share : most);
}

}  // namespace m
