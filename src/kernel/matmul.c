/* SPDX-License-Identifier: MIT */
#include "matmul.h"

#include "blas.h"
#include "dtype.h"

/* Products that OpenBLAS computes on one thread have at most so many multiplications. */
#define SMALL UINT64_C(262144)

uint64_t wr_matmul_elements(const weir_matmul_words *words, weir_dtype dtype)
{
    uint64_t work = (uint64_t)(words->rows * words->columns) * (uint64_t)words->inner;
    bool shares = dtype == WEIR_DTYPE_F32 && (words->batch_count == 1 || work > SMALL);
    return shares ? 1 : (uint64_t)(words->batch_count * words->rows);
}

weir_result wr_matmul_ready(const weir_kernel *kernel)
{
    return kernel->dtype == WEIR_DTYPE_F32 ? wr_blas_load() : WEIR_OK;
}

/* Rows of one product. */
typedef struct part {
    const weir_matmul_words *words;
    const char *left; /* its first row */
    const char *right;
    char *result;
    int64_t rows;
    weir_dtype dtype;
} part;

/* ---- f32 ---- */

static bool is_transposed(const weir_matmul_operand *operand)
{
    return operand->column_stride != 1;
}

static int lead(const weir_matmul_operand *operand)
{
    return (int)(is_transposed(operand) ? operand->column_stride : operand->row_stride);
}

static int form(const weir_matmul_operand *operand)
{
    return is_transposed(operand) ? WR_BLAS_TRANSPOSED : WR_BLAS_PLAIN;
}

static void run_f32(const part *what)
{
    const weir_matmul_words *words = what->words;
    wr_blas_get()(WR_BLAS_ROW_MAJOR, form(&words->left), form(&words->right),
                  (int)what->rows, (int)words->columns, (int)words->inner, 1.0F,
                  (const float *)what->left, lead(&words->left),
                  (const float *)what->right, lead(&words->right), 0.0F,
                  (float *)what->result, (int)words->columns);
}

/* ---- f16 and bf16 ----
 *
 * Blocks of both operands are converted to f32; the sums of a block of the result stay
 * there until they are complete. */

enum { ROWS = 32, COLUMNS = 64, INNER = 128 };

typedef struct blocks {
    float left[ROWS][INNER];
    float right[INNER][COLUMNS];
    float sums[ROWS][COLUMNS];
} blocks;

/* `count` elements side by side in the block, `rows` times. */
static void convert(weir_dtype dtype, float *to, int64_t lead_to, const char *from,
                    const weir_matmul_operand *operand, const int64_t extents[2])
{
    int64_t bytes = wr_dtype_bytes(dtype);
    for (int64_t r = 0; r < extents[0]; r++) {
        wr_dtype_load(dtype, to + r * lead_to, from + r * operand->row_stride * bytes,
                      operand->column_stride, (uint64_t)extents[1]);
    }
}

WR_CLONES static void multiply(blocks *work, int64_t rows, int64_t inner)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < inner; i++) {
            float factor = work->left[r][i];
            for (int64_t c = 0; c < COLUMNS; c++) {
                work->sums[r][c] += factor * work->right[i][c];
            }
        }
    }
}

/* The block of the result that starts at `row` and `column`. */
static void run_block(const part *what, blocks *work, int64_t row, int64_t column)
{
    const weir_matmul_words *words = what->words;
    int64_t bytes = wr_dtype_bytes(what->dtype);
    int64_t rows = what->rows - row < ROWS ? what->rows - row : ROWS;
    int64_t columns =
        words->columns - column < COLUMNS ? words->columns - column : COLUMNS;
    memset(work, 0, sizeof *work);
    for (int64_t i = 0; i < words->inner; i += INNER) {
        int64_t inner = words->inner - i < INNER ? words->inner - i : INNER;
        int64_t left = row * words->left.row_stride + i * words->left.column_stride;
        int64_t right = i * words->right.row_stride + column * words->right.column_stride;
        convert(what->dtype, work->left[0], INNER, what->left + left * bytes,
                &words->left, (const int64_t[2]){rows, inner});
        convert(what->dtype, work->right[0], COLUMNS, what->right + right * bytes,
                &words->right, (const int64_t[2]){inner, columns});
        multiply(work, rows, inner);
    }
    for (int64_t r = 0; r < rows; r++) {
        char *to = what->result + ((row + r) * words->columns + column) * bytes;
        wr_dtype_store(what->dtype, to, work->sums[r], (uint64_t)columns);
    }
}

static void run_halves(const part *what)
{
    blocks work;
    for (int64_t row = 0; row < what->rows; row += ROWS) {
        for (int64_t column = 0; column < what->words->columns; column += COLUMNS) {
            run_block(what, &work, row, column);
        }
    }
}

/* ---- launches ---- */

static char *at(const weir_launch *launch, uint32_t binding, int64_t element)
{
    return (char *)(uintptr_t)launch->bindings[binding].address +
           element * wr_dtype_bytes(launch->kernel->dtype);
}

/* Rows [first, first + rows) of product `batch`. */
static void run_part(const weir_launch *launch, int64_t batch, int64_t first,
                     int64_t rows)
{
    const weir_matmul_words *words = launch->arguments;
    const weir_matmul_operand *left = &words->left;
    const weir_matmul_operand *right = &words->right;
    const part what = {
        .words = words,
        .left = at(launch, 0,
                   left->offset + batch * left->batch_stride + first * left->row_stride),
        .right = at(launch, 1, right->offset + batch * right->batch_stride),
        .result = at(launch, 2, (batch * words->rows + first) * words->columns),
        .rows = rows,
        .dtype = launch->kernel->dtype,
    };
    if (what.dtype == WEIR_DTYPE_F32) {
        run_f32(&what);
    } else {
        run_halves(&what);
    }
}

void wr_matmul_run(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    const weir_matmul_words *words = launch->arguments;
    int64_t row = launch->element_count == 1 ? 0 : (int64_t)begin;
    int64_t last =
        launch->element_count == 1 ? words->batch_count * words->rows : (int64_t)end;
    while (row < last) {
        int64_t first = row % words->rows;
        int64_t rows =
            words->rows - first < last - row ? words->rows - first : last - row;
        run_part(launch, row / words->rows, first, rows);
        row += rows;
    }
}
