// The fused operations that work along rows: a block of threads for each row.

// x (rows, width) -> out. Without `mean` it is the norm by the root of the mean square, and nothing is centred.
extern "C" __global__ void norm_forward(
    const real* x, const real* weight, const real* bias, real* out, real* mean, real* scale, double eps, Int width,
    Int rows) {
    EACH_ROW(row, rows) {
        const real* a = x + row * width;
        real total = 0, middle = 0, squares = 0;
        if (mean) {
            EACH_COLUMN(j, width) total += a[j];
            middle = block_sum(total) / width;
        }
        EACH_COLUMN(j, width) squares += (a[j] - middle) * (a[j] - middle);
        real inverse = 1 / sqrt(block_sum(squares) / width + (real)eps);
        EACH_COLUMN(j, width) {
            real normal = (a[j] - middle) * inverse;
            if (weight) normal *= weight[j];
            out[row * width + j] = bias ? normal + bias[j] : normal;
        }
        if (threadIdx.x == 0) {
            scale[row] = inverse;
            if (mean) mean[row] = middle;
        }
    }
}

extern "C" __global__ void norm_backward(
    const real* g, const real* x, const real* weight, const real* mean, const real* scale, real* out, Int width,
    Int rows) {
    EACH_ROW(row, rows) {
        const real *a = x + row * width, *along = g + row * width;
        real middle = mean ? mean[row] : (real)0, inverse = scale[row], total = 0, dot = 0;
        EACH_COLUMN(j, width) {
            real slope = weight ? along[j] * weight[j] : along[j];
            total += slope;
            dot += slope * (a[j] - middle) * inverse;
        }
        total = mean ? block_sum(total) / width : (real)0;
        dot = block_sum(dot) / width;
        EACH_COLUMN(j, width) {
            real slope = weight ? along[j] * weight[j] : along[j];
            out[row * width + j] = (slope - total - (a[j] - middle) * inverse * dot) * inverse;
        }
    }
}

#define STRIPS 8

// The gradient of a norm's weight: g times the normal numbers, added up along the columns, each block over its share of
// the rows. Blocks are WARP columns wide and STRIPS rows high; parts (gridDim.y, width).
extern "C" __global__ void norm_columns(
    const real* g, const real* x, const real* mean, const real* scale, real* parts, Int width, Int rows) {
    __shared__ real sums[STRIPS][WARP];
    int lane = threadIdx.x % WARP, strip = threadIdx.x / WARP;
    Int column = blockIdx.x * (Int)WARP + lane;
    real total = 0;
    for (Int row = blockIdx.y * (Int)STRIPS + strip; row < rows && column < width; row += gridDim.y * (Int)STRIPS)
        total += g[row * width + column] * (x[row * width + column] - (mean ? mean[row] : (real)0)) * scale[row];
    sums[strip][lane] = total;
    __syncthreads();
    if (strip > 0 || column >= width) return;
    for (int i = 1; i < STRIPS; i++) total += sums[i][lane];
    parts[blockIdx.y * width + column] = total;
}

// Where `allowed` is given, the softmax over the allowed elements: 0 at the others, and a row without any is all 0.
extern "C" __global__ void softmax_forward(
    const real* x, const unsigned char* allowed, real* out, Int width, Int rows) {
    EACH_ROW(row, rows) {
        const real* a = x + row * width;
        const unsigned char* open = allowed ? allowed + row * width : 0;
        real top = -INFINITE, total = 0;
        EACH_COLUMN(j, width) if (!open || open[j]) top = fmax(top, a[j]);
        top = block_max(top);
        if (open && top == -INFINITE) top = 0;
        EACH_COLUMN(j, width) {
            real e = !open || open[j] ? exp(a[j] - top) : (real)0;
            out[row * width + j] = e;
            total += e;
        }
        total = block_sum(total);
        if (open && total == 0) total = 1;
        EACH_COLUMN(j, width) out[row * width + j] /= total;
    }
}

extern "C" __global__ void softmax_backward(const real* g, const real* out, real* result, Int width, Int rows) {
    EACH_ROW(row, rows) {
        real dot = 0;
        EACH_COLUMN(j, width) dot += g[row * width + j] * out[row * width + j];
        dot = block_sum(dot);
        EACH_COLUMN(j, width) result[row * width + j] = out[row * width + j] * (g[row * width + j] - dot);
    }
}

// logits (rows, width) -> losses (rows,), and the logarithm of each row's sum of exponentials. The label counts by
// `sharp`, the mean over all classes by `smooth`.
extern "C" __global__ void cross_entropy_forward(
    const real* logits, const Int* labels, real* losses, real* logs, Int ignored, double sharp, double smooth,
    Int width, Int rows) {
    EACH_ROW(row, rows) {
        const real* a = logits + row * width;
        real top = -INFINITE, total = 0, sum = 0;
        EACH_COLUMN(j, width) top = fmax(top, a[j]);
        top = block_max(top);
        EACH_COLUMN(j, width) {
            total += exp(a[j] - top);
            sum += a[j] - top;
        }
        real log_total = log(block_sum(total));
        sum = block_sum(sum);
        if (threadIdx.x > 0) continue;
        logs[row] = log_total + top;
        real loss = 0;
        if (labels[row] != ignored) {
            loss = (real)sharp * (log_total - (a[labels[row]] - top));
            if (smooth != 0) loss += (real)smooth * (log_total - sum / width);
        }
        losses[row] = loss;
    }
}

extern "C" __global__ void cross_entropy_backward(
    const real* g, const real* logits, const Int* labels, const real* logs, real* out, Int ignored, double sharp,
    double share, Int width, Int rows) {
    EACH_ROW(row, rows) {
        Int label = labels[row];
        EACH_COLUMN(j, width) {
            real slope = exp(logits[row * width + j] - logs[row]) - (real)share;
            if (j == label) slope -= (real)sharp;
            out[row * width + j] = label == ignored ? (real)0 : slope * g[row];
        }
    }
}

// Whether the query of a row may attend to key j; rows count the queries of one head after the other.
__device__ bool attends(const unsigned char* mask, Int causal, Int row, Int j, Int length, Int size) {
    return (!mask || mask[row * size + j]) && (!causal || j <= row % length);
}

// scores (rows, size), in place -> weights after dropout; logs (rows,): the logarithm of each row's sum, inf if empty.
extern "C" __global__ void attention_forward(
    real* scores, const unsigned char* mask, real* logs, double scale, Int causal, Int dropping, Int threshold,
    double factor, Int low, Int high, Int start, Int length, Int size, Int rows) {
    bool masked = mask || causal;
    EACH_ROW(row, rows) {
        real* a = scores + row * size;
        real top = -INFINITE, total = 0;
        EACH_COLUMN(j, size) {
            a[j] = attends(mask, causal, row, j, length, size) ? a[j] * (real)scale : -INFINITE;
            top = fmax(top, a[j]);
        }
        top = block_max(top);
        if (masked && top == -INFINITE) top = 0;
        EACH_COLUMN(j, size) {
            a[j] = exp(a[j] - top);
            total += a[j];
        }
        total = block_sum(total);
        bool empty = masked && total == 0;
        EACH_COLUMN(j, size) {
            real weight = empty ? (real)0 : a[j] / total;
            a[j] = dropping ? weight * dropout_factor(start + row * size + j, threshold, factor, low, high) : weight;
        }
        if (threadIdx.x == 0) logs[row] = empty ? INFINITE : log(total) + top;
    }
}

// scores and slopes (rows, size), both in place: scores -> weights after dropout, which the values' gradient needs;
// slopes, the gradient of those weights -> the gradient of the scores.
extern "C" __global__ void attention_backward(
    real* scores, real* slopes, const unsigned char* mask, const real* logs, double scale, Int causal, Int dropping,
    Int threshold, double factor, Int low, Int high, Int start, Int length, Int size, Int rows) {
    EACH_ROW(row, rows) {
        real *a = scores + row * size, *slope = slopes + row * size;
        real dot = 0;
        EACH_COLUMN(j, size) {
            a[j] = attends(mask, causal, row, j, length, size) ? exp(a[j] * (real)scale - logs[row]) : (real)0;
            if (dropping) slope[j] *= dropout_factor(start + row * size + j, threshold, factor, low, high);
            dot += slope[j] * a[j];
        }
        dot = block_sum(dot);
        EACH_COLUMN(j, size) {
            slope[j] = (slope[j] - dot) * a[j] * (real)scale;
            if (dropping) a[j] *= dropout_factor(start + row * size + j, threshold, factor, low, high);
        }
    }
}
