// Steps of the optimisers over flat arrays, in place. `clip` multiplies the gradient first.

__device__ real decayed(real g, double decay, real p) { return decay == 0 ? g : g + (real)decay * p; }

extern "C" __global__ void sgd_step(
    real* p, const real* g, real* velocity, double lr, double momentum, double fresh, double decay, Int nesterov,
    double clip, Int n) {
    EACH(i, n) {
        real slope = decayed(g[i] * (real)clip, decay, p[i]);
        if (velocity) {
            velocity[i] = (real)momentum * velocity[i] + (real)fresh * slope;
            slope = nesterov ? slope + (real)momentum * velocity[i] : velocity[i];
        }
        p[i] -= (real)lr * slope;
    }
}

extern "C" __global__ void rmsprop_step(
    real* p, const real* g, real* square, real* mean, real* velocity, double lr, double alpha, double fresh, double eps,
    double decay, double momentum, double clip, Int n) {
    EACH(i, n) {
        real slope = decayed(g[i] * (real)clip, decay, p[i]);
        square[i] = (real)alpha * square[i] + (real)fresh * slope * slope;
        real variance = square[i];
        if (mean) {
            mean[i] += (real)fresh * (slope - mean[i]);
            variance -= mean[i] * mean[i];
        }
        real step = slope / (sqrt(variance) + (real)eps);
        if (velocity) step = velocity[i] = (real)momentum * velocity[i] + step;
        p[i] -= (real)lr * step;
    }
}

// `rate` is lr / (1 - beta1^t), `root` is sqrt(1 - beta2^t); `shrink` multiplies p first, `decay` adds decay * p to g.
extern "C" __global__ void adam_step(
    real* p, const real* g, real* mean, real* square, real* largest, double rate, double root, double fresh1,
    double beta2, double fresh2, double eps, double decay, double shrink, double clip, Int n) {
    EACH(i, n) {
        real slope = decayed(g[i] * (real)clip, decay, p[i]);
        mean[i] += (real)fresh1 * (slope - mean[i]);
        real s = square[i] = (real)beta2 * square[i] + (real)fresh2 * slope * slope;
        if (largest) s = largest[i] = largest[i] >= s ? largest[i] : s;
        p[i] = p[i] * (real)shrink - (real)rate * (mean[i] / (sqrt(s) / (real)root + (real)eps));
    }
}
