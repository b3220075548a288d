/* SPDX-License-Identifier: MIT */
/* How the items of streams come and complete; see sim.h. */
#include "sim.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>
#include <string.h>

/* ---- notes ---- */

static bool has_notes(const wr_sim_notes *notes)
{
    return notes->first < notes->end;
}

static wr_sim_note *first_note(const wr_sim_notes *notes)
{
    return &notes->items[notes->first];
}

/* Moves to the front before it grows, once half of the array has been taken out. */
static bool add_note(wr_sim_notes *notes, wr_sim_note note)
{
    if (notes->end == notes->capacity && notes->first >= notes->capacity / 2) {
        notes->end -= notes->first;
        if (notes->end > 0) {
            memmove(notes->items, notes->items + notes->first,
                    notes->end * sizeof notes->items[0]);
        }
        notes->first = 0;
    }
    if (!wr_host_grow((void **)&notes->items, &notes->capacity, notes->end + 1,
                      sizeof notes->items[0])) {
        return false;
    }
    notes->items[notes->end++] = note;
    return true;
}

void wr_sim_free_notes(wr_sim_stream *stream)
{
    wr_host_free(stream->waits.items);
    wr_host_free(stream->steps.items);
    memset(&stream->waits, 0, sizeof stream->waits);
    memset(&stream->steps, 0, sizeof stream->steps);
}

/* ---- streams by handle ---- */

wr_sim_stream *wr_sim_stream_at(const wr_sim *sim, weir_driver_stream handle)
{
    uint32_t index = (uint32_t)handle - 1;
    if (index >= sim->stream_count) {
        return NULL;
    }
    wr_sim_stream *stream = &sim->streams[index];
    return stream->is_live && stream->generation == handle >> 32 ? stream : NULL;
}

weir_result wr_sim_get_stream(wr_sim *sim, const char *call, weir_driver_stream handle,
                              wr_sim_stream **stream)
{
    wr_sim_stream *found = wr_sim_stream_at(sim, handle);
    if (found == NULL || !found->is_open) {
        return wr_error(WEIR_INVALID, "sim: %s: 0x%" PRIx64 " is not an open stream",
                        call, handle);
    }
    *stream = found;
    return WEIR_OK;
}

weir_result wr_sim_refuse_capture(wr_sim_stream *stream, const char *call)
{
    if (!stream->is_capturing) {
        return WEIR_OK;
    }
    stream->is_spoiled = true;
    return wr_error(WEIR_DRIVER, "sim: %s on a capturing stream; the capture is spoiled",
                    call);
}

void wr_sim_reap(wr_sim_stream *stream)
{
    if (stream->is_live && !stream->is_open && stream->fences == 0 &&
        stream->done == stream->queued) {
        wr_sim_free_notes(stream);
        stream->is_live = false;
    }
}

/* ---- items come ---- */

/* With a lag, the items queued so far complete `lag` steps from now. */
static bool note_step(const wr_sim *sim, wr_sim_stream *stream)
{
    wr_sim_notes *steps = &stream->steps;
    uint64_t position = stream->queued + 1;
    if (sim->desc.lag == 0) {
        return true;
    }
    if (has_notes(steps) && steps->items[steps->end - 1].value == sim->step) {
        steps->items[steps->end - 1].position = position;
        return true;
    }
    return add_note(steps, (wr_sim_note){.position = position, .value = sim->step});
}

weir_result wr_sim_queue_item(wr_sim *sim, wr_sim_stream *stream)
{
    if (stream->is_capturing) {
        return WEIR_OK;
    }
    if (!note_step(sim, stream)) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "sim: no memory to queue work");
    }
    stream->queued++;
    return WEIR_OK;
}

weir_result wr_sim_queue_wait(wr_sim *sim, wr_sim_stream *stream, uint32_t awaited,
                              uint64_t position)
{
    wr_sim_note wait = {.position = stream->queued, .value = position, .stream = awaited};
    if (!add_note(&stream->waits, wait)) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "sim: no memory to queue a wait");
    }
    stream->queued++;
    sim->streams[awaited].fences++;
    return WEIR_OK;
}

/* ---- items complete ---- */

/* Takes out waits that have completed, and completes those whose turn has come. */
static bool settle_stream(wr_sim *sim, wr_sim_stream *stream)
{
    bool moved = false;
    while (has_notes(&stream->waits)) {
        const wr_sim_note *wait = first_note(&stream->waits);
        wr_sim_stream *awaited = &sim->streams[wait->stream];
        if (wait->position > stream->done ||
            (wait->position == stream->done && awaited->done < wait->value)) {
            break;
        }
        if (wait->position == stream->done) {
            stream->done++;
        }
        awaited->fences--;
        stream->waits.first++;
        moved = true;
    }
    return moved;
}

/* One stream's wait may be what another's waits for, so round after round until none
 * moves. */
static void settle(wr_sim *sim)
{
    bool moved;
    do {
        moved = false;
        for (size_t i = 0; i < sim->stream_count; i++) {
            moved = settle_stream(sim, &sim->streams[i]) || moved;
        }
    } while (moved);
    for (size_t i = 0; i < sim->stream_count; i++) {
        wr_sim_reap(&sim->streams[i]);
    }
}

/* Raises what is wanted of the streams that the wanted items of `stream` wait for. */
static bool want_awaited(wr_sim *sim, const wr_sim_stream *stream)
{
    bool raised = false;
    for (size_t i = stream->waits.first; i < stream->waits.end; i++) {
        const wr_sim_note *wait = &stream->waits.items[i];
        wr_sim_stream *awaited = &sim->streams[wait->stream];
        if (wait->position >= stream->wanted) {
            break;
        }
        if (awaited->done < wait->value && awaited->wanted < wait->value) {
            awaited->wanted = wait->value;
            raised = true;
        }
    }
    return raised;
}

/* First marks, on all streams, how far each has to get, round after round until no wait
 * asks for more; then completes all of it. No recursion: chains of waits may be as long
 * as a trace. */
void wr_sim_complete(wr_sim *sim, wr_sim_stream *stream, uint64_t position)
{
    WR_ASSERT(position <= stream->queued);
    if (position <= stream->done) {
        return;
    }
    stream->wanted = position;
    bool raised;
    do {
        raised = false;
        for (size_t i = 0; i < sim->stream_count; i++) {
            raised = want_awaited(sim, &sim->streams[i]) || raised;
        }
    } while (raised);
    for (size_t i = 0; i < sim->stream_count; i++) {
        wr_sim_stream *each = &sim->streams[i];
        each->done = each->wanted > each->done ? each->wanted : each->done;
        each->wanted = 0;
    }
    settle(sim);
}

void wr_sim_complete_lagging(wr_sim *sim)
{
    for (size_t i = 0; i < sim->stream_count; i++) {
        wr_sim_stream *stream = &sim->streams[i];
        while (has_notes(&stream->steps)) {
            wr_sim_note note = *first_note(&stream->steps);
            if (note.value + sim->desc.lag > sim->step) {
                break;
            }
            stream->steps.first++;
            wr_sim_complete(sim, stream, note.position);
        }
    }
}

bool wr_sim_is_busy(const wr_sim *sim)
{
    for (size_t i = 0; i < sim->stream_count; i++) {
        if (sim->streams[i].is_live && sim->streams[i].done < sim->streams[i].queued) {
            return true;
        }
    }
    return false;
}
