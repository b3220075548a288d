/* SPDX-License-Identifier: MIT */
/* The space is walked run by run along its last dimension: one simple loop each. */
#include "move.h"

#include "dtype.h"

/* Elements along the last dimension: where each binding's first one is, and the step to
 * its next. */
typedef struct stretch {
    char *at[3];
    int64_t strides[3];
    uint64_t count;
    const weir_launch *launch;
    const weir_move_words *words;
    int64_t bytes; /* of an element */
} stretch;

typedef void (*stretch_fn)(const stretch *what);

/* ---- the walk ---- */

static int64_t bytes_in(const weir_launch *launch, uint32_t binding)
{
    bool has_indices = launch->kernel->kind != WEIR_KERNEL_PLACE && binding == 1;
    return wr_dtype_bytes(has_indices ? WEIR_DTYPE_I32 : launch->kernel->dtype);
}

/* From the index of a run's first element, over dimensions `first`... */
static void locate(stretch *what, uint64_t index, int64_t first, int64_t outer)
{
    int64_t elements[3];
    for (uint32_t v = 0; v < 3; v++) {
        elements[v] = what->words->views[v].offset;
        elements[v] += first > 0 ? outer * what->words->views[v].strides[0] : 0;
    }
    for (int64_t d = what->words->rank; d-- > first;) {
        uint64_t extent = (uint64_t)what->words->extents[d];
        for (uint32_t v = 0; v < 3; v++) {
            elements[v] += (int64_t)(index % extent) * what->words->views[v].strides[d];
        }
        index /= extent;
    }
    for (uint32_t v = 0; v < what->launch->binding_count; v++) {
        what->at[v] = (char *)(uintptr_t)what->launch->bindings[v].address +
                      elements[v] * bytes_in(what->launch, v);
    }
}

/* Indices [begin, end) of the dimensions from `first` on, at `outer` of the one before.
 */
static void walk(const weir_launch *launch, const uint64_t range[2], int64_t first,
                 int64_t outer, stretch_fn run)
{
    const weir_move_words *words = launch->arguments;
    int64_t last = words->rank - 1;
    uint64_t extent = last < first ? 1 : (uint64_t)words->extents[last];
    stretch what = {
        .launch = launch, .words = words, .bytes = wr_dtype_bytes(launch->kernel->dtype)};
    for (uint32_t v = 0; v < 3; v++) {
        what.strides[v] = last < first ? 0 : words->views[v].strides[last];
    }
    for (uint64_t index = range[0]; index < range[1]; index += what.count) {
        uint64_t left = extent - index % extent;
        what.count = left < range[1] - index ? left : range[1] - index;
        locate(&what, index, first, outer);
        run(&what);
    }
}

/* ---- loops ---- */

/* to[i] = from[i], whatever the elements are. */
static void copy(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                 const stretch *what)
{
#define COPY(type)                                                                       \
    for (uint64_t i = 0; i < what->count; i++) {                                         \
        ((type *)to)[(int64_t)i * to_stride] =                                           \
            ((const type *)from)[(int64_t)i * from_stride];                              \
    }
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, what->count * (uint64_t)what->bytes);
    } else if (what->bytes == 4) {
        COPY(uint32_t)
    } else if (what->bytes == 2) {
        COPY(uint16_t)
    } else {
        COPY(uint8_t)
    }
#undef COPY
}

static int32_t index_of(const stretch *what, uint64_t i)
{
    return ((const int32_t *)what->at[1])[(int64_t)i * what->strides[1]];
}

static bool is_within(const stretch *what, int32_t index)
{
    return index >= 0 && index < what->words->index_count;
}

/* A NaN as it lies in memory, in the low bytes. */
static uint32_t missing(weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_F32    ? UINT32_C(0x7FC00000)
           : dtype == WEIR_DTYPE_F16  ? UINT32_C(0x7E00)
           : dtype == WEIR_DTYPE_BF16 ? UINT32_C(0x7FC0)
                                      : 0;
}

/* One element, or if the index is the same for all of them the whole stretch. */
static void gather_at(const stretch *what, uint64_t i, uint64_t count)
{
    stretch part = *what;
    int64_t place = (int64_t)i;
    int32_t index = index_of(what, i);
    uint32_t none = missing(what->launch->kernel->dtype);
    int64_t from = place * what->strides[0] + index * what->words->index_stride;
    part.count = count;
    char *to = what->at[2] + place * what->strides[2] * what->bytes;
    if (is_within(what, index)) {
        copy(to, what->strides[2], what->at[0] + from * what->bytes, what->strides[0],
             &part);
    } else {
        for (uint64_t k = 0; k < count; k++) {
            memcpy(to + (int64_t)k * what->strides[2] * what->bytes, &none,
                   (size_t)what->bytes);
        }
    }
}

static void gather_stretch(const stretch *what)
{
    uint64_t step = what->strides[1] == 0 ? what->count : 1;
    for (uint64_t i = 0; i < what->count; i += step) {
        gather_at(what, i, step);
    }
}

static void add_at(const stretch *what, char *to, const char *from)
{
    weir_dtype dtype = what->launch->kernel->dtype;
    if (dtype == WEIR_DTYPE_I32) {
        uint32_t one;
        uint32_t other;
        memcpy(&one, to, sizeof one);
        memcpy(&other, from, sizeof other);
        one += other;
        memcpy(to, &one, sizeof one);
        return;
    }
    float sum;
    float added;
    wr_dtype_load(dtype, &sum, to, 1, 1);
    wr_dtype_load(dtype, &added, from, 1, 1);
    sum += added;
    wr_dtype_store(dtype, to, &sum, 1);
}

static void add_stretch(const stretch *what)
{
    for (uint64_t i = 0; i < what->count; i++) {
        int64_t place = (int64_t)i;
        int32_t index = index_of(what, i);
        if (is_within(what, index)) {
            int64_t to = place * what->strides[0] + index * what->words->index_stride;
            add_at(what, what->at[0] + to * what->bytes,
                   what->at[2] + place * what->strides[2] * what->bytes);
        }
    }
}

static void place_stretch(const stretch *what)
{
    copy(what->at[0], what->strides[0], what->at[1], what->strides[1], what);
}

/* ---- launches ---- */

void wr_move_gather(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    walk(launch, (const uint64_t[2]){begin, end}, 0, 0, gather_stretch);
}

void wr_move_scatter_add(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    const weir_move_words *words = launch->arguments;
    for (int64_t outer = 0; outer < words->extents[0]; outer++) {
        walk(launch, (const uint64_t[2]){begin, end}, 1, outer, add_stretch);
    }
}

void wr_move_place(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    walk(launch, (const uint64_t[2]){begin, end}, 0, 0, place_stretch);
}
