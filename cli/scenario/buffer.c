/* SPDX-License-Identifier: MIT */
/* Buffers by name, and the held ones by address. A failing allocation must change
 * nothing, which is checked here. */
#include "array.h"
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- held buffers: run->held, ascending by address, apart from each other ---- */

/* Where an address belongs among the held ones. */
static size_t find_place(const wr_scn_run *run, uint64_t address)
{
    size_t from = 0, to = run->held_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (run->buffers[run->held[middle]].address < address) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static bool check_apart(wr_scn_run *run, size_t low, size_t high)
{
    const wr_scn_buffer *a = &run->buffers[low], *b = &run->buffers[high];
    return b->address - a->address >= a->extent ||
           wr_scn_fail(run,
                       "expected live buffers apart, got '%s' at %" PRIu64
                       " with %" PRIu64 " bytes and '%s' at %" PRIu64,
                       run->buffer_names.names[low], a->address, a->extent,
                       run->buffer_names.names[high], b->address);
}

static bool hold(wr_scn_run *run, size_t number)
{
    if (!wr_scn_array_grow((void **)&run->held, &run->held_capacity, run->held_count + 1,
                           sizeof *run->held)) {
        return wr_scn_wrong(run, "the host has no memory");
    }
    wr_scn_buffer *buffer = &run->buffers[number];
    size_t place = find_place(run, buffer->address);
    memmove(&run->held[place + 1], &run->held[place],
            (run->held_count - place) * sizeof *run->held);
    run->held[place] = number;
    run->held_count++;
    run->held_bytes += buffer->bytes;
    buffer->is_known = buffer->is_held = true;
    return (place == 0 || check_apart(run, run->held[place - 1], number)) &&
           (place + 1 == run->held_count ||
            check_apart(run, number, run->held[place + 1]));
}

static void drop(wr_scn_run *run, wr_scn_buffer *buffer)
{
    size_t place = find_place(run, buffer->address);
    memmove(&run->held[place], &run->held[place + 1],
            (run->held_count - place - 1) * sizeof *run->held);
    run->held_count--;
    run->held_bytes -= buffer->bytes;
    buffer->is_held = false;
}

void wr_scn_buffers_release(wr_scn_run *run)
{
    while (run->held_count > 0) {
        wr_scn_buffer *buffer = &run->buffers[run->held[run->held_count - 1]];
        weir_buffer_release(buffer->handle);
        drop(run, buffer);
    }
}

/* ---- names ---- */

bool wr_scn_buffer_recall(wr_scn_run *run, wr_scn_text name, wr_scn_buffer **buffer)
{
    char key[WR_SCN_NAME_BYTES];
    *buffer = NULL;
    if (!wr_scn_expand(run, name, key)) {
        return false;
    }
    size_t number = wr_scn_names_find(&run->buffer_names, key);
    if (number != WR_SCN_NO_NAME && run->buffers[number].is_known) {
        *buffer = &run->buffers[number];
        return true;
    }
    return run->options.fail_call > 0 ||
           wr_scn_wrong(run, "there is no buffer '%s'", key);
}

bool wr_scn_buffer_get(wr_scn_run *run, wr_scn_text name, wr_scn_buffer **buffer)
{
    if (!wr_scn_buffer_recall(run, name, buffer)) {
        return false;
    }
    if (!*buffer || (*buffer)->is_held) {
        return true;
    }
    size_t number = (size_t)(*buffer - run->buffers);
    *buffer = NULL;
    return run->options.fail_call > 0 || wr_scn_wrong(run, "buffer '%s' has been freed",
                                                      run->buffer_names.names[number]);
}

static bool add_name(wr_scn_run *run, const char *name, size_t *number)
{
    *number = wr_scn_names_add(&run->buffer_names, name);
    if (*number == WR_SCN_NO_NAME ||
        !wr_scn_array_grow((void **)&run->buffers, &run->buffer_capacity, *number + 1,
                           sizeof *run->buffers)) {
        return wr_scn_wrong(run, "the host has no memory");
    }
    return true;
}

/* ---- free ---- */

static bool free_buffer(wr_scn_run *run, wr_scn_buffer *buffer)
{
    weir_result result = weir_buffer_release(buffer->handle);
    drop(run, buffer);
    return wr_scn_accept(run, "weir_buffer_release", result);
}

bool wr_scn_run_free(wr_scn_run *run, const wr_scn_statement *statement)
{
    wr_scn_buffer *buffer;
    return wr_scn_buffer_get(run, statement->name, &buffer) &&
           (!buffer || free_buffer(run, buffer));
}

/* ---- alloc ---- */

struct request {
    char name[WR_SCN_NAME_BYTES];
    char tag[WR_SCN_NAME_BYTES];
    size_t number; /* of the buffer */
    uint64_t bytes;
    weir_result expected;
    weir_usage before;
};

static const weir_buffer untouched = {UINT32_MAX, UINT32_MAX};

static bool prepare(wr_scn_run *run, const wr_scn_statement *statement,
                    struct request *request)
{
    request->expected = (weir_result)statement->choice;
    request->tag[0] = '\0';
    if (!wr_scn_expand(run, statement->name, request->name) ||
        !wr_scn_evaluate_size(run, &statement->number[0], "a size", &request->bytes) ||
        (statement->tag.start && !wr_scn_expand(run, statement->tag, request->tag)) ||
        !add_name(run, request->name, &request->number)) {
        return false;
    }
    wr_scn_buffer *buffer = &run->buffers[request->number];
    if (!buffer->is_held) {
        return true;
    }
    if (run->options.fail_call > 0) {
        return free_buffer(run, buffer);
    }
    return wr_scn_wrong(run, "buffer '%s' is held already", request->name);
}

static weir_result create(wr_scn_run *run, const struct request *request,
                          weir_stream *stream, weir_buffer *handle)
{
    weir_buffer_desc desc = {.size = sizeof desc,
                             .tag = request->tag[0] ? request->tag : NULL,
                             .persistent = run->window_depth > 0};
    return weir_buffer_create(stream, request->bytes, &desc, handle);
}

static bool settle_success(wr_scn_run *run, const struct request *request,
                           weir_buffer handle)
{
    if (run->is_child || (request->expected != WEIR_OK && run->options.fail_call == 0)) {
        weir_buffer_release(handle);
        return wr_scn_fail(run, "expected %s from alloc %s, got OK",
                           weir_result_name(run->is_child ? WEIR_FORKED
                                                          : request->expected),
                           request->name);
    }
    wr_scn_buffer *buffer = &run->buffers[request->number];
    buffer->handle = handle;
    buffer->address = weir_buffer_address(handle);
    buffer->bytes = request->bytes;
    buffer->extent = weir_buffer_extent(handle);
    if (!hold(run, request->number)) {
        return false;
    }
    return buffer->extent >= buffer->bytes ||
           wr_scn_fail(run, "expected room for %" PRIu64 " bytes, got %" PRIu64,
                       buffer->bytes, buffer->extent);
}

static bool check_same(wr_scn_run *run, const char *what, uint64_t before, uint64_t now)
{
    return before == now || wr_scn_fail(run,
                                        "expected %s == %" PRIu64
                                        " as before the failed alloc, got %" PRIu64,
                                        what, before, now);
}

/* A failed allocation leaves live buffers where they were, and takes nothing; but in a
 * capture nothing may be given back, so that half of what it needed may stay. */
static bool check_unchanged(wr_scn_run *run, const weir_usage *before)
{
    weir_usage now = {.size = sizeof now};
    if (!wr_scn_accept(run, "weir_device_memory_usage",
                       weir_device_memory_usage(run->device, &now)) ||
        !check_same(run, "live", before->live_count, now.live_count) ||
        !check_same(run, "in_use", before->in_use_bytes, now.in_use_bytes) ||
        !check_same(run, "padding", before->padding_bytes, now.padding_bytes)) {
        return false;
    }
    for (size_t i = 0; i < run->held_count; i++) {
        const wr_scn_buffer *buffer = &run->buffers[run->held[i]];
        if (!check_same(run, run->buffer_names.names[run->held[i]], buffer->address,
                        weir_buffer_address(buffer->handle))) {
            return false;
        }
    }
    return now.reserved_bytes <= before->reserved_bytes || run->capture_count > 0 ||
           wr_scn_fail(run,
                       "expected reserved <= %" PRIu64
                       " as before the failed alloc, got %" PRIu64,
                       before->reserved_bytes, now.reserved_bytes);
}

/* The failure is the one that the scenario names, or that --fail-call makes. */
static bool is_expected(const wr_scn_run *run, const struct request *request,
                        weir_result result)
{
    if (run->is_child) {
        return result == WEIR_FORKED &&
               (request->expected == WEIR_OK || request->expected == WEIR_FORKED);
    }
    bool is_memory =
        result == WEIR_OUT_OF_MEMORY || result == WEIR_LIMIT || result == WEIR_DRIVER;
    if (!run->sim && result == WEIR_LIMIT && request->expected == WEIR_OUT_OF_MEMORY) {
        return true; /* the capacity is a limit there */
    }
    return result == request->expected || (run->options.fail_call > 0 && is_memory);
}

static bool settle_failure(wr_scn_run *run, const struct request *request,
                           weir_buffer handle, weir_result result)
{
    wr_scn_keep_error(run);
    if (run->is_small && result == WEIR_OUT_OF_MEMORY) {
        return wr_scn_skip(run, "so large a device");
    }
    if (!is_expected(run, request, result)) {
        return wr_scn_fail(run,
                           "expected %s from alloc %s of %" PRIu64 " bytes, got %s: %s",
                           weir_result_name(request->expected), request->name,
                           request->bytes, weir_result_name(result), run->error);
    }
    if (handle.index != untouched.index || handle.generation != untouched.generation) {
        return wr_scn_fail(run,
                           "expected the handle untouched by a failed alloc, got %u.%u",
                           handle.index, handle.generation);
    }
    return run->is_child || run->is_gone || check_unchanged(run, &request->before);
}

bool wr_scn_run_alloc(wr_scn_run *run, const wr_scn_statement *statement)
{
    struct request request;
    wr_scn_stream *stream;
    weir_result result;
    if (!prepare(run, statement, &request) ||
        !wr_scn_stream_get(run, statement->stream, &stream, &result)) {
        return false;
    }
    request.before = (weir_usage){.size = sizeof request.before};
    if (!wr_scn_accept(run, "weir_device_memory_usage",
                       weir_device_memory_usage(run->device, &request.before))) {
        return false;
    }
    weir_buffer handle = untouched;
    if (result == WEIR_OK) {
        result = create(run, &request, stream->stream, &handle);
    }
    return result == WEIR_OK ? settle_success(run, &request, handle)
                             : settle_failure(run, &request, handle, result);
}
