// Enough of CUDA for g++ to compile our kernels and run them. Each thread of a block is a fibre, so barriers and
// shuffles mean what they mean on a card; blocks run one after the other.
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

using std::erfc;
using std::exp;
using std::fabs;
using std::fmax;
using std::log;
using std::sqrt;

#define __device__ static inline
#define __global__
#define __shared__ static

struct Dim {
    unsigned x, y, z;
};
static Dim gridDim, blockDim, blockIdx, threadIdx;

static float __int_as_float(int bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

struct Fibre {
    ucontext_t context;
    jmp_buf place;  // where it goes on; jumps are much quicker than switching contexts, which only begins a fibre
    std::vector<char> stack;
    bool begun, done, waiting;
    double slot;
};
static std::vector<Fibre> fibres;
static jmp_buf scheduler;
static const std::function<void()>* body;

static void give_way() {
    if (!_setjmp(fibres[threadIdx.x].place)) _longjmp(scheduler, 1);
}

static void take_turn(Fibre& fibre) {
    if (_setjmp(scheduler)) return;
    if (fibre.begun) _longjmp(fibre.place, 1);
    fibre.begun = true;
    setcontext(&fibre.context);
}

static void __syncthreads() {
    fibres[threadIdx.x].waiting = true;
    give_way();
}

// The lanes of a warp run in step: between two turns of one, each of the others has had one.
template <class T>
static T __shfl_xor_sync(unsigned, T value, int step) {
    fibres[threadIdx.x].slot = value;
    give_way();
    T other = (T)fibres[threadIdx.x ^ step].slot;
    give_way();
    return other;
}

static void enter() {
    (*body)();
    fibres[threadIdx.x].done = true;
    give_way();
}

template <class Test>
static bool all(unsigned first, unsigned end, Test test) {
    for (unsigned i = first; i < end; i++)
        if (!test(fibres[i])) return false;
    return true;
}

// Each warp runs on alone until all its lanes wait at a barrier, so that one that is missing shows.
static void run_block() {
    for (auto& fibre : fibres) {
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = fibre.stack.data();
        fibre.context.uc_stack.ss_size = fibre.stack.size();
        fibre.begun = fibre.done = fibre.waiting = false;
        makecontext(&fibre.context, enter, 0);
    }
    while (!all(0, fibres.size(), [](Fibre& f) { return f.done; })) {
        for (unsigned first = 0; first < fibres.size(); first += 32)
            while (!all(first, first + 32, [](Fibre& f) { return f.done || f.waiting; }))
                for (unsigned i = first; i < first + 32; i++)
                    if (!fibres[i].done && !fibres[i].waiting) {
                        threadIdx.x = i;
                        take_turn(fibres[i]);
                    }
        for (auto& fibre : fibres) fibre.waiting = false;
    }
}

static void on_cpu(unsigned grid_x, unsigned grid_y, unsigned threads, const std::function<void()>& kernel) {
    gridDim = {grid_x, grid_y, 1};
    blockDim = {threads, 1, 1};
    body = &kernel;
    fibres.resize(threads);
    for (auto& fibre : fibres) fibre.stack.resize(32768);
    for (blockIdx.y = 0; blockIdx.y < grid_y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < grid_x; blockIdx.x++) run_block();
}
