/* SPDX-License-Identifier: MIT */
#include "named.h"

#include "error.h"
#include "launch.h"
#include "queue.h"

#include "kernel/dtype.h"
#include "kernel/named.h"

#include <string.h>

/* Two operands and the result, or an operand's copy. */
#define BINDINGS 3

typedef struct named_run {
    wr_queue *queue;
    wr_node *node;
    bool is_in_place;
    weir_buffer result;
    weir_buffer copy; /* of an operand that may not be bound twice; else none */
} named_run;

/* ---- copies ---- */

/* All elements of a storage into a buffer. */
static weir_result copy(wr_queue *queue, const wr_storage *from, weir_buffer to)
{
    weir_buffer buffers[BINDINGS] = {to, from->buffer};
    const weir_binding bindings[2] = {wr_binding_of(to, WEIR_ACCESS_WRITE),
                                      wr_binding_of(from->buffer, WEIR_ACCESS_READ)};
    weir_move_words words = {.element_count = (int64_t)from->element_count, .rank = 1};
    for (uint32_t d = 0; d < WEIR_EXPRESSION_RANK; d++) {
        words.extents[d] = d == 0 ? words.element_count : 1;
    }
    words.views[0].strides[0] = 1;
    words.views[1].strides[0] = 1;
    weir_launch launch = {
        .kernel = wr_named_find(WEIR_KERNEL_PLACE, from->dtype),
        .bindings = bindings,
        .binding_count = 2,
        .arguments = &words,
        .argument_bytes = sizeof words,
        .element_count = from->element_count,
        .buffers = buffers,
        .buffer_count = 2,
    };
    WR_TRY(wr_launch_declare(queue, from->buffer));
    return wr_launch_run(queue, &launch, buffers);
}

/* ---- the result ---- */

/* Whether nobody but the node has a reference on operand 0, as tensor or as buffer, and
 * its bytes are already counted under the result's tag. */
static bool can_be_taken_over(const named_run *work)
{
    const wr_storage *target = work->node->operands[0].storage;
    return atomic_load_explicit(&target->references, memory_order_acquire) == 1 &&
           weir_buffer_references(target->buffer) == 1 &&
           weir_buffer_stream(target->buffer) == work->queue->stream &&
           strcmp(target->tag, work->node->tag) == 0;
}

static weir_result make_result(named_run *work)
{
    const wr_node *node = work->node;
    const weir_buffer_desc desc = {.tag = node->tag};
    wr_storage *target = node->named->has_target ? node->operands[0].storage : NULL;
    work->is_in_place = target != NULL && can_be_taken_over(work);
    if (work->is_in_place) {
        work->result = target->buffer;
        return WEIR_OK;
    }
    WR_TRY(weir_buffer_create(work->queue->stream,
                              node->storage->element_count *
                                  wr_dtype_bytes(node->storage->dtype),
                              &desc, &work->result));
    return target != NULL ? copy(work->queue, target, work->result) : WEIR_OK;
}

/* ---- bindings ---- */

static bool is_same(weir_buffer one, weir_buffer other)
{
    return one.index == other.index && one.generation == other.generation;
}

/* What operand `k` is bound by: its buffer, or a copy where the driver wants no buffer
 * twice and the operand before has the same. */
static weir_result find_buffer(named_run *work, uint32_t k, weir_buffer *buffer)
{
    const wr_storage *storage = work->node->operands[k].storage;
    uint32_t first = work->node->named->has_target;
    *buffer = storage->buffer;
    if (!work->queue->exclusive_bindings || k == first ||
        !is_same(storage->buffer, work->node->operands[k - 1].storage->buffer)) {
        return wr_launch_declare(work->queue, storage->buffer);
    }
    const weir_buffer_desc desc = {.tag = work->node->tag};
    WR_TRY(weir_buffer_create(work->queue->stream,
                              storage->element_count * wr_dtype_bytes(storage->dtype),
                              &desc, &work->copy));
    *buffer = work->copy;
    return copy(work->queue, storage, work->copy);
}

static weir_result launch(named_run *work)
{
    const wr_node *node = work->node;
    const wr_named *named = node->named;
    weir_buffer buffers[BINDINGS + 1];
    weir_binding bindings[BINDINGS];
    uint32_t count = 0;
    weir_access access = named->has_target ? WEIR_ACCESS_READ_WRITE : WEIR_ACCESS_WRITE;
    if (named->result_first) {
        buffers[count] = work->result;
        bindings[count++] = wr_binding_of(work->result, access);
    }
    for (uint32_t k = named->has_target; k < node->operand_count; k++) {
        WR_TRY(find_buffer(work, k, &buffers[count]));
        bindings[count] = wr_binding_of(buffers[count], WEIR_ACCESS_READ);
        count++;
    }
    if (!named->result_first) {
        buffers[count] = work->result;
        bindings[count++] = wr_binding_of(work->result, access);
    }
    weir_launch what = {
        .kernel = wr_named_find(named->kind, named->dtype),
        .bindings = bindings,
        .binding_count = count,
        .arguments = &named->words,
        .argument_bytes = named->word_bytes,
        .element_count = named->element_count,
        .element_work = named->element_work,
        .buffers = buffers,
        .buffer_count = count,
    };
    return wr_launch_run(work->queue, &what, buffers);
}

weir_result wr_named_run(wr_queue *queue, wr_node *node)
{
    named_run work = {.queue = queue, .node = node};
    weir_result done = make_result(&work);
    if (done == WEIR_OK) {
        done = launch(&work);
    }
    if (work.copy.generation != 0) {
        weir_buffer_release(work.copy);
    }
    if (done != WEIR_OK) {
        goto undo_result;
    }
    queue->counters.in_place += work.is_in_place;
    queue->counters.buffers += !work.is_in_place;
    if (work.is_in_place) {
        node->operands[0].storage->buffer = WEIR_NO_BUFFER;
    }
    wr_storage_become_ready(node->storage, work.result, node->tag);
    return WEIR_OK;

undo_result:
    if (!work.is_in_place && work.result.generation != 0) {
        weir_buffer_release(work.result);
    }
    return done;
}
