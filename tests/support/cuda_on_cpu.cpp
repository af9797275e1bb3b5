// Runs kernels as a card does. Each thread of a block is a fibre, so barriers and shuffles mean what they mean on a card; blocks
// run one after the other.
#include "cuda_on_cpu.h"

#include <setjmp.h>
#include <ucontext.h>

#include <vector>

Dim gridDim, blockDim, blockIdx, threadIdx;

struct Fibre {
    ucontext_t context;
    jmp_buf place;  // where it goes on; jumps are much quicker than switching contexts, which only begins a fibre
    std::vector<char> stack;
    bool begun, done, waiting;
    char slot[8];
};
static std::vector<Fibre> fibres;
static jmp_buf scheduler;
static void (*body)(const void*);
static const void* argument;

static void give_way() {
    if (!_setjmp(fibres[threadIdx.x].place)) _longjmp(scheduler, 1);
}

static void take_turn(Fibre& fibre) {
    if (_setjmp(scheduler)) return;
    if (fibre.begun) _longjmp(fibre.place, 1);
    fibre.begun = true;
    setcontext(&fibre.context);
}

void __syncthreads() {
    fibres[threadIdx.x].waiting = true;
    give_way();
}

// The lanes of a warp run in step: between two turns of one, each of the others has had one.
void exchange(void* value, unsigned size, int step) {
    memcpy(fibres[threadIdx.x].slot, value, size);
    give_way();
    memcpy(value, fibres[threadIdx.x ^ step].slot, size);
    give_way();
}

static void enter() {
    body(argument);
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

void run_grid(Grid grid, void (*run)(const void*), const void* kernel) {
    gridDim = {grid.x, grid.y, 1};
    blockDim = {grid.threads, 1, 1};
    body = run, argument = kernel;
    fibres.resize(grid.threads);
    for (auto& fibre : fibres) fibre.stack.resize(32768);
    for (unsigned block = grid.first; block < grid.end; block++) {
        blockIdx = {block % grid.x, block / grid.x, 0};
        run_block();
    }
}
