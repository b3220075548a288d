/* SPDX-License-Identifier: MIT */
/* The steps: which members' results are wanted; which of them take over an operand's
 * buffer; buffers for the others; bindings; the smallest iteration space that says the
 * same; the kernel of that structure; arguments; launch. */
#include "dispatch.h"

#include "error.h"
#include "launch.h"

#include "kernel/cache.h"
#include "kernel/dtype.h"

#include <string.h>

#define BINDINGS (WEIR_EXPRESSION_VIEWS + WEIR_EXPRESSION_OUTPUTS)
#define WORDS                                                                            \
    (2 + WEIR_EXPRESSION_RANK + WEIR_EXPRESSION_VIEWS * (1 + WEIR_EXPRESSION_RANK) +     \
     WEIR_EXPRESSION_SCALARS)

/* A wanted result. */
typedef struct result {
    wr_node *node;
    wr_storage *replaced; /* whose buffer it takes over; NULL: it has a new one */
    weir_buffer buffer;
} result;

typedef struct dispatch {
    wr_queue *queue;
    wr_group *group;
    result results[WEIR_EXPRESSION_OUTPUTS];
    uint32_t result_count;
    weir_binding bindings[BINDINGS];
    weir_buffer buffers[BINDINGS + 1]; /* the bindings', then perhaps the arguments' */
    uint32_t binding_count;
    uint64_t element_count; /* of each result */
    uint64_t reduced_count; /* that go into one element */
    int64_t words[WORDS];
} dispatch;

/* ---- results ---- */

static bool is_result(const wr_group *group, const wr_node *member)
{
    bool is_last = member == group->members[group->member_count - 1];
    return group->expression.reduce != WEIR_REDUCE_NONE
               ? is_last
               : wr_group_wanted(group, member) > 0;
}

bool wr_dispatch_fits(const wr_queue *queue, const wr_group *group)
{
    uint32_t results = 0;
    uint32_t buffers = 0;
    for (uint32_t m = 0; m < group->member_count; m++) {
        results += is_result(group, group->members[m]);
    }
    for (uint32_t v = 0; v < group->expression.view_count; v++) {
        bool is_known = false;
        for (uint32_t before = 0; before < v; before++) {
            is_known |= group->views[before].storage == group->views[v].storage;
        }
        buffers += !is_known;
    }
    return results <= WEIR_EXPRESSION_OUTPUTS &&
           (queue->max_bindings == 0 || results + buffers <= queue->max_bindings);
}

static void find_results(dispatch *work)
{
    const wr_group *group = work->group;
    for (uint32_t m = 0; m < group->member_count; m++) {
        if (is_result(group, group->members[m])) {
            work->results[work->result_count++].node = group->members[m];
        }
    }
}

/* ---- in place ---- */

/* Whether the members read every element of the storage where they write that of the same
 * index, and nobody else can see it. */
static bool can_be_replaced(const dispatch *work, const wr_storage *storage)
{
    const wr_group *group = work->group;
    if (storage->element_count != work->element_count ||
        atomic_load_explicit(&storage->references, memory_order_acquire) !=
            wr_group_uses(group, storage) ||
        weir_buffer_references(storage->buffer) != 1 ||
        weir_buffer_stream(storage->buffer) != work->queue->stream) {
        return false;
    }
    for (uint32_t v = 0; v < group->expression.view_count; v++) {
        if (group->views[v].storage == storage &&
            !wr_view_is_plain(&group->views[v].view)) {
            return false;
        }
    }
    return true;
}

static bool is_taken(const dispatch *work, const wr_storage *storage)
{
    bool taken = false;
    for (uint32_t r = 0; r < work->result_count; r++) {
        taken |= work->results[r].replaced == storage;
    }
    return taken;
}

/* Only for a result of the same tag: who holds which bytes stays true. */
static void replace_operands(dispatch *work)
{
    const wr_group *group = work->group;
    if (group->expression.reduce != WEIR_REDUCE_NONE) {
        return;
    }
    for (uint32_t r = 0; r < work->result_count; r++) {
        result *wanted = &work->results[r];
        for (uint32_t v = 0; wanted->replaced == NULL && v < group->expression.view_count;
             v++) {
            wr_storage *storage = group->views[v].storage;
            if (storage->dtype == wanted->node->storage->dtype &&
                strcmp(storage->tag, wanted->node->tag) == 0 &&
                !is_taken(work, storage) && can_be_replaced(work, storage)) {
                wanted->replaced = storage;
                wanted->buffer = storage->buffer;
            }
        }
    }
}

/* ---- buffers ---- */

static void release_buffers(dispatch *work)
{
    for (uint32_t r = 0; r < work->result_count; r++) {
        result *wanted = &work->results[r];
        if (wanted->replaced == NULL && wanted->buffer.generation != 0) {
            weir_buffer_release(wanted->buffer);
        }
    }
}

static weir_result make_buffers(dispatch *work)
{
    for (uint32_t r = 0; r < work->result_count; r++) {
        result *wanted = &work->results[r];
        const wr_node *node = wanted->node;
        weir_buffer_desc desc = {.tag = node->tag};
        if (wanted->replaced != NULL) {
            continue;
        }
        WR_TRY(
            weir_buffer_create(work->queue->stream,
                               work->element_count * wr_dtype_bytes(node->storage->dtype),
                               &desc, &wanted->buffer));
    }
    return WEIR_OK;
}

/* The number of a buffer's binding; there may be one already. */
static uint8_t bind(dispatch *work, weir_buffer buffer, weir_access access)
{
    uint8_t b = 0;
    while (b < work->binding_count &&
           (work->buffers[b].index != buffer.index ||
            work->buffers[b].generation != buffer.generation)) {
        b++;
    }
    if (b == work->binding_count) {
        work->buffers[b] = buffer;
        work->bindings[b] = wr_binding_of(buffer, access);
        work->binding_count++;
    }
    work->bindings[b].access |= access;
    return b;
}

/* Buffers of other streams are declared. */
static weir_result bind_all(dispatch *work)
{
    weir_expression *expression = &work->group->expression;
    for (uint8_t v = 0; v < expression->view_count; v++) {
        weir_buffer buffer = work->group->views[v].storage->buffer;
        WR_TRY(wr_launch_declare(work->queue, buffer));
        expression->views[v].binding = bind(work, buffer, WEIR_ACCESS_READ);
    }
    expression->output_count = (uint8_t)work->result_count;
    for (uint8_t r = 0; r < work->result_count; r++) {
        const wr_node *node = work->results[r].node;
        expression->outputs[r] = (weir_output){
            .step = node->step,
            .binding = bind(work, work->results[r].buffer, WEIR_ACCESS_WRITE),
            .dtype = (uint8_t)node->storage->dtype,
        };
    }
    expression->binding_count = (uint8_t)work->binding_count;
    return WEIR_OK;
}

/* ---- the iteration space ---- */

/* Whether for every view a step along dimension `outer` is a whole run along `inner`. */
static bool run_together(const wr_group *group, uint32_t outer, uint32_t inner)
{
    bool together = true;
    for (uint32_t v = 0; together && v < group->expression.view_count; v++) {
        const int64_t *strides = group->views[v].view.strides;
        together = strides[outer] == strides[inner] * (int64_t)group->space.extent[inner];
    }
    return together;
}

static void move_dimension(wr_group *group, uint32_t to, uint32_t from)
{
    group->space.extent[to] = group->space.extent[from];
    for (uint32_t v = 0; v < group->expression.view_count; v++) {
        group->views[v].view.strides[to] = group->views[v].view.strides[from];
    }
}

/* Leaves out dimensions of one element and joins those that run together, so that shapes
 * that differ in nothing else have one structure. Kept and reduced ones stay apart. */
static void collapse(wr_group *group)
{
    uint32_t first_reduced = group->space.rank - group->reduced_rank;
    uint32_t rank = 0;
    uint32_t kept = 0;
    for (uint32_t d = 0; d < group->space.rank; d++) {
        uint64_t extent = group->space.extent[d];
        bool is_first = rank == 0 || (d >= first_reduced && rank == kept);
        if (extent > 1 && !is_first && run_together(group, rank - 1, d)) {
            extent *= group->space.extent[rank - 1];
            move_dimension(group, rank - 1, d);
            group->space.extent[rank - 1] = extent;
        } else if (extent > 1) {
            move_dimension(group, rank++, d);
        }
        kept = d < first_reduced ? rank : kept;
    }
    group->space.rank = rank;
    group->reduced_rank = rank - kept;
}

static weir_view_layout layout_of(const wr_view *view, const weir_shape *space)
{
    int64_t stride = 1;
    bool linear = true;
    bool scalar = true;
    for (uint32_t d = space->rank; d-- > 0;) {
        linear &= view->strides[d] == stride;
        scalar &= view->strides[d] == 0;
        stride *= (int64_t)space->extent[d];
    }
    return linear ? WEIR_VIEW_LINEAR : scalar ? WEIR_VIEW_SCALAR : WEIR_VIEW_STRIDED;
}

/* ---- arguments ---- */

static void write_words(dispatch *work)
{
    const wr_group *group = work->group;
    weir_expression *expression = &work->group->expression;
    expression->rank = (uint8_t)group->space.rank;
    expression->reduced_rank = (uint8_t)group->reduced_rank;
    work->words[0] = (int64_t)work->element_count;
    work->words[1] = (int64_t)work->reduced_count;
    for (uint32_t d = 0; d < expression->rank; d++) {
        work->words[2 + d] = (int64_t)group->space.extent[d];
    }
    for (uint32_t v = 0; v < expression->view_count; v++) {
        const wr_view *view = &group->views[v].view;
        int64_t *words = work->words + weir_expression_view_word(expression, v);
        expression->views[v].layout = (uint8_t)layout_of(view, &group->space);
        words[0] = view->offset;
        memcpy(words + 1, view->strides, expression->rank * sizeof *words);
    }
    for (uint32_t k = 0; k < expression->scalar_count; k++) {
        work->words[weir_expression_scalar_word(expression, k)] =
            (uint32_t)group->scalars[k];
    }
}

static void count_elements(dispatch *work)
{
    const weir_shape *space = &work->group->space;
    uint32_t first_reduced = space->rank - work->group->reduced_rank;
    work->element_count = 1;
    work->reduced_count = 1;
    for (uint32_t d = 0; d < space->rank; d++) {
        *(d < first_reduced ? &work->element_count : &work->reduced_count) *=
            space->extent[d];
    }
}

/* ---- launching ---- */

static weir_result launch(dispatch *work)
{
    const weir_expression *expression = &work->group->expression;
    weir_launch what = {
        .kernel = wr_cache_find(expression),
        .bindings = work->bindings,
        .binding_count = work->binding_count,
        .arguments = work->words,
        .argument_bytes = weir_expression_words(expression) * sizeof(int64_t),
        .element_count = work->element_count,
        .element_work = work->reduced_count,
        .buffers = work->buffers,
        .buffer_count = work->binding_count,
    };
    if (what.kernel == NULL) {
        return wr_fail(WEIR_OUT_OF_HOST_MEMORY,
                       "weir_tensor: no host memory for a kernel of %u steps",
                       (unsigned)expression->step_count);
    }
    return wr_launch_run(work->queue, &what, work->buffers);
}

static void count_what_was_done(const dispatch *work)
{
    weir_tensor_counters *counters = &work->queue->counters;
    counters->fused += work->group->member_count - 1;
    for (uint32_t r = 0; r < work->result_count; r++) {
        counters->in_place += work->results[r].replaced != NULL;
        counters->buffers += work->results[r].replaced == NULL;
    }
}

static void hand_over(const dispatch *work)
{
    for (uint32_t r = 0; r < work->result_count; r++) {
        const result *wanted = &work->results[r];
        if (wanted->replaced != NULL) {
            wanted->replaced->buffer = WEIR_NO_BUFFER;
        }
        wr_storage_become_ready(wanted->node->storage, wanted->buffer, wanted->node->tag);
    }
}

weir_result wr_dispatch_run(wr_queue *queue, wr_group *group)
{
    dispatch work = {.queue = queue, .group = group};
    count_elements(&work);
    find_results(&work);
    replace_operands(&work);
    weir_result done = make_buffers(&work);
    if (done != WEIR_OK) {
        goto undo_buffers;
    }
    done = bind_all(&work);
    if (done != WEIR_OK) {
        goto undo_buffers;
    }
    collapse(group);
    write_words(&work);
    done = launch(&work);
    if (done != WEIR_OK) {
        goto undo_buffers;
    }
    count_what_was_done(&work);
    hand_over(&work);
    return WEIR_OK;

undo_buffers:
    release_buffers(&work);
    return done;
}
