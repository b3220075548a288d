/* SPDX-License-Identifier: MIT */
/* See loss.h. One function for each entry of the table. */
#include "loss.h"

#include "base/poison.h"
#include "base/result.h"

#include <stddef.h>

static wr_loss *loss_of(weir_driver *driver)
{
    return (wr_loss *)(void *)driver;
}

weir_result wr_loss_check(const wr_loss *loss)
{
    const char *call = atomic_load_explicit(&loss->lost_in, memory_order_relaxed);
    return call == NULL
               ? WEIR_OK
               : wr_error(WEIR_DEVICE_LOST,
                          "%s: the device is lost, as its driver said in %s; what it "
                          "held counts as returned; close it, and open it anew if it "
                          "has come back",
                          loss->real_table->name, call);
}

static weir_result note(wr_loss *loss, weir_result result, const char *call)
{
    const char *none = NULL;
    if (result == WEIR_DEVICE_LOST) {
        atomic_compare_exchange_strong(&loss->lost_in, &none, call);
    }
    return result;
}

/* Hands a call on. */
#define PASS(entry, ...)                                                                 \
    note(loss, loss->real_table->entry(loss->real, __VA_ARGS__), #entry)

/* Of a lost device: with a text, or quietly. */
#define REFUSE_LOST(driver)                                                              \
    wr_loss *loss = loss_of(driver);                                                     \
    WR_TRY(wr_loss_check(loss))
#define SKIP_LOST(driver)                                                                \
    wr_loss *loss = loss_of(driver);                                                     \
    if (wr_loss_is_lost(loss)) {                                                         \
        return WEIR_DEVICE_LOST;                                                         \
    }

/* ---- memory ---- */

static weir_result page_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    REFUSE_LOST(driver);
    return PASS(page_alloc, bytes, address);
}

/* The addresses may soon be somebody else's. */
static void open_checked(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    if (loss_of(driver)->checked) {
        wr_poison_open(address, bytes);
    }
}

static weir_result page_free(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    open_checked(driver, address, bytes);
    SKIP_LOST(driver);
    return PASS(page_free, address, bytes);
}

static weir_result range_reserve(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    REFUSE_LOST(driver);
    return PASS(range_reserve, bytes, address);
}

static weir_result range_free(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    SKIP_LOST(driver);
    return PASS(range_free, address, bytes);
}

static weir_result commit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    REFUSE_LOST(driver);
    return PASS(commit, address, bytes);
}

static weir_result commit_chunks(weir_driver *driver, uint64_t address, uint64_t bytes,
                                 uint64_t chunk_bytes)
{
    REFUSE_LOST(driver);
    return PASS(commit_chunks, address, bytes, chunk_bytes);
}

static weir_result decommit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    open_checked(driver, address, bytes);
    SKIP_LOST(driver);
    return PASS(decommit, address, bytes);
}

static weir_result move(weir_driver *driver, uint64_t to, uint64_t from, uint64_t bytes)
{
    REFUSE_LOST(driver);
    return PASS(move, to, from, bytes);
}

static weir_result share_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    REFUSE_LOST(driver);
    return PASS(share_alloc, bytes, address);
}

static weir_result share_export(weir_driver *driver, uint64_t address, uint64_t bytes,
                                int *file)
{
    REFUSE_LOST(driver);
    return PASS(share_export, address, bytes, file);
}

static weir_result share_import(weir_driver *driver, int file, uint64_t bytes,
                                uint64_t *address)
{
    REFUSE_LOST(driver);
    return PASS(share_import, file, bytes, address);
}

/* ---- accounting and time ---- */

static weir_result memory_info(weir_driver *driver, weir_memory_info *info)
{
    SKIP_LOST(driver);
    return PASS(memory_info, info);
}

static weir_result untouched(weir_driver *driver, uint64_t address, uint64_t bytes,
                             uint64_t *untouched_bytes)
{
    SKIP_LOST(driver);
    return PASS(untouched, address, bytes, untouched_bytes);
}

static uint64_t pending_bytes(weir_driver *driver)
{
    wr_loss *loss = loss_of(driver);
    return wr_loss_is_lost(loss) ? 0 : loss->real_table->pending_bytes(loss->real);
}

static weir_result progress(weir_driver *driver, bool wait)
{
    SKIP_LOST(driver);
    return PASS(progress, wait);
}

/* The clock of a lost device stands still. */
static uint64_t now_ms(weir_driver *driver)
{
    wr_loss *loss = loss_of(driver);
    if (!wr_loss_is_lost(loss)) {
        atomic_store(&loss->last_ms, loss->real_table->now_ms(loss->real));
    }
    return atomic_load(&loss->last_ms);
}

/* ---- work ---- */

static weir_result write(weir_driver *driver, weir_driver_stream stream, uint64_t address,
                         const void *data, uint64_t bytes)
{
    REFUSE_LOST(driver);
    return PASS(write, stream, address, data, bytes);
}

static weir_result read(weir_driver *driver, weir_driver_stream stream, uint64_t address,
                        void *data, uint64_t bytes)
{
    REFUSE_LOST(driver);
    return PASS(read, stream, address, data, bytes);
}

static weir_result copy(weir_driver *driver, weir_driver_stream stream, uint64_t to,
                        uint64_t from, uint64_t bytes)
{
    REFUSE_LOST(driver);
    return PASS(copy, stream, to, from, bytes);
}

static weir_result launch(weir_driver *driver, weir_driver_stream stream,
                          const weir_launch *what)
{
    REFUSE_LOST(driver);
    return PASS(launch, stream, what);
}

static uint64_t workspace(weir_driver *driver, const weir_launch *what)
{
    const wr_loss *loss = loss_of(driver);
    return wr_loss_is_lost(loss) ? 0 : loss->real_table->workspace(loss->real, what);
}

static weir_result queue(weir_driver *driver, weir_driver_stream stream)
{
    REFUSE_LOST(driver);
    return PASS(queue, stream);
}

/* ---- streams and fences ---- */

static weir_result stream_open(weir_driver *driver, void *native,
                               weir_driver_stream *stream)
{
    REFUSE_LOST(driver);
    return PASS(stream_open, native, stream);
}

static void stream_close(weir_driver *driver, weir_driver_stream stream)
{
    wr_loss *loss = loss_of(driver);
    if (!wr_loss_is_lost(loss)) {
        loss->real_table->stream_close(loss->real, stream);
    }
}

static void *stream_native(weir_driver *driver, weir_driver_stream stream)
{
    wr_loss *loss = loss_of(driver);
    return wr_loss_is_lost(loss) ? NULL
                                 : loss->real_table->stream_native(loss->real, stream);
}

static weir_result stream_test(weir_driver *driver, weir_driver_stream stream)
{
    SKIP_LOST(driver);
    return PASS(stream_test, stream);
}

static weir_result stream_sync(weir_driver *driver, weir_driver_stream stream)
{
    REFUSE_LOST(driver);
    return PASS(stream_sync, stream);
}

static weir_result stream_wait(weir_driver *driver, weir_driver_stream stream,
                               weir_driver_fence fence)
{
    REFUSE_LOST(driver);
    return PASS(stream_wait, stream, fence);
}

static weir_result fence_record(weir_driver *driver, weir_driver_stream stream,
                                weir_driver_fence *fence)
{
    REFUSE_LOST(driver);
    return PASS(fence_record, stream, fence);
}

static weir_result fence_test(weir_driver *driver, weir_driver_fence fence)
{
    SKIP_LOST(driver);
    return PASS(fence_test, fence);
}

static weir_result fence_wait(weir_driver *driver, weir_driver_fence fence)
{
    SKIP_LOST(driver);
    return PASS(fence_wait, fence);
}

static void fence_release(weir_driver *driver, weir_driver_fence fence)
{
    wr_loss *loss = loss_of(driver);
    if (!wr_loss_is_lost(loss)) {
        loss->real_table->fence_release(loss->real, fence);
    }
}

/* ---- graph capture ---- */

static weir_result capture_begin(weir_driver *driver, weir_driver_stream stream)
{
    REFUSE_LOST(driver);
    return PASS(capture_begin, stream);
}

static weir_result capture_end(weir_driver *driver, weir_driver_stream stream,
                               uint64_t *graph)
{
    REFUSE_LOST(driver);
    return PASS(capture_end, stream, graph);
}

static weir_result capture_abort(weir_driver *driver, weir_driver_stream stream)
{
    SKIP_LOST(driver);
    return PASS(capture_abort, stream);
}

static weir_result graph_launch(weir_driver *driver, weir_driver_stream stream,
                                uint64_t graph)
{
    REFUSE_LOST(driver);
    return PASS(graph_launch, stream, graph);
}

static void graph_destroy(weir_driver *driver, uint64_t graph)
{
    wr_loss *loss = loss_of(driver);
    if (!wr_loss_is_lost(loss)) {
        loss->real_table->graph_destroy(loss->real, graph);
    }
}

/* ---- the door itself ---- */

static void close(weir_driver *driver)
{
    wr_loss *loss = loss_of(driver);
    loss->real_table->close(loss->real);
}

static void properties(weir_driver *driver, weir_driver_properties *what)
{
    wr_loss *loss = loss_of(driver);
    loss->real_table->properties(loss->real, what);
}

/* Every entry but open, which has no driver yet. */
#define ENTRY_LIST(X)                                                                    \
    X(close)                                                                             \
    X(properties)                                                                        \
    X(page_alloc)                                                                        \
    X(page_free)                                                                         \
    X(write)                                                                             \
    X(read)                                                                              \
    X(copy)                                                                              \
    X(stream_open)                                                                       \
    X(stream_close)                                                                      \
    X(stream_test)                                                                       \
    X(stream_sync)                                                                       \
    X(stream_wait)                                                                       \
    X(fence_record)                                                                      \
    X(fence_test)                                                                        \
    X(fence_wait)                                                                        \
    X(fence_release)                                                                     \
    X(range_reserve)                                                                     \
    X(range_free)                                                                        \
    X(commit)                                                                            \
    X(decommit)                                                                          \
    X(move)                                                                              \
    X(commit_chunks)                                                                     \
    X(share_alloc)                                                                       \
    X(share_export)                                                                      \
    X(share_import)                                                                      \
    X(memory_info)                                                                       \
    X(untouched)                                                                         \
    X(pending_bytes)                                                                     \
    X(progress)                                                                          \
    X(launch)                                                                            \
    X(workspace)                                                                         \
    X(queue)                                                                             \
    X(stream_native)                                                                     \
    X(now_ms)                                                                            \
    X(capture_begin)                                                                     \
    X(capture_end)                                                                       \
    X(capture_abort)                                                                     \
    X(graph_launch)                                                                      \
    X(graph_destroy)

#define COUNT_ENTRY(entry) +1
_Static_assert(sizeof(weir_driver_table) ==
                   (3 ENTRY_LIST(COUNT_ENTRY)) * sizeof(void (*)(void)),
               "size, name, open, and the entries of the list");

weir_result wr_loss_open(wr_loss *loss, const weir_driver_table *table,
                         const char *argument, const void *config)
{
    weir_driver *real = NULL;
    WR_TRY(table->open(argument, config, &real));
    loss->real = real;
    loss->real_table = table;
    loss->table = *table;
#define STAND_BEFORE(entry) loss->table.entry = table->entry == NULL ? NULL : entry;
    ENTRY_LIST(STAND_BEFORE)
#undef STAND_BEFORE
    loss->base.table = &loss->table;
    atomic_init(&loss->lost_in, NULL);
    atomic_init(&loss->last_ms, 0);
    return WEIR_OK;
}
