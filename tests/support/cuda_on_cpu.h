// Enough of CUDA for g++ to compile our kernels; cuda_on_cpu.cpp, which is compiled once, runs them.
#include <math.h>
#include <string.h>

#define __device__ static inline
#define __global__
#define __shared__ static

struct Dim {
    unsigned x, y, z;
};
struct Grid {
    unsigned x, y, threads, first, end;  // blocks that are run
};
extern Dim gridDim, blockDim, blockIdx, threadIdx;

void __syncthreads();
void run_grid(Grid grid, void (*run)(const void*), const void* kernel);
void exchange(void* value, unsigned size, int step);  // with the lane whose number differs by these bits

template <class T>
static T __shfl_xor_sync(unsigned, T value, int step) {
    exchange(&value, sizeof value, step);
    return value;
}

static inline int atomicAdd(int* place, int more) {
    int before = *place;
    *place += more;
    return before;
}

static inline float __int_as_float(int bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <class Kernel>
static void on_cpu(Grid grid, const Kernel& kernel) {
    run_grid(grid, [](const void* given) { (*(const Kernel*)given)(); }, &kernel);
}
