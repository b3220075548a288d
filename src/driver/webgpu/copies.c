/* SPDX-License-Identifier: MIT */
/* Writes, reads and copies of the WebGPU driver.
 *
 * WebGPU copies in words of 4 bytes, and not inside one buffer. So a write that begins or
 * ends inside a word reads that word first; a copy inside one page goes through a scratch
 * buffer; and a copy between places that lie differently in their words goes through the
 * host, as do the last bytes of one whose length is no multiple of 4. */
#include "webgpu.h"

#include "base/memory.h"
#include "base/result.h"

#include <string.h>

#define WORD 4u

/* A run of bytes in a page's buffer. */
typedef struct place {
    wr_webgpu_page *page;
    uint64_t offset;
} place;

/* Inside the lock. */
static weir_result find_place(const wr_webgpu *webgpu, const char *entry,
                              uint64_t address, uint64_t bytes, place *found)
{
    WR_TRY(wr_regions_check_backed(&webgpu->book, entry, address, bytes));
    const wr_region *region = wr_regions_find(&webgpu->book, address);
    *found = (place){wr_webgpu_page_of(region), address - region->address};
    return WEIR_OK;
}

static uint64_t down(uint64_t bytes)
{
    return bytes / WORD * WORD;
}

static uint64_t up(uint64_t bytes)
{
    return down(bytes + WORD - 1);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- reads ---- */

/* Inside the lock, which is let go of while the device copies. */
static weir_result read_piece(wr_webgpu *webgpu, wr_webgpu_stream *stream,
                              wr_webgpu_stage *stage, place from, char *data,
                              uint64_t bytes)
{
    wr_wg_encoder encoder;
    uint64_t skipped = from.offset % WORD;
    WR_TRY(wr_webgpu_encode(webgpu, "read", stream, &encoder));
    webgpu->api.encoder_copy(encoder, from.page->buffer, from.offset - skipped,
                             stage->buffer, 0, up(skipped + bytes));
    from.page->is_touched = true;
    return wr_webgpu_stage_read(webgpu, stage, data, skipped, bytes);
}

static weir_result read_all(wr_webgpu *webgpu, wr_webgpu_stream *stream, place from,
                            char *data, uint64_t bytes)
{
    wr_webgpu_stage *stage;
    WR_TRY(wr_webgpu_stage_take(webgpu, &stage));
    weir_result result = WEIR_OK;
    for (uint64_t done = 0, piece; done < bytes && result == WEIR_OK; done += piece) {
        place at = {from.page, from.offset + done};
        piece = least(bytes - done, WR_WEBGPU_STAGE_BYTES - WORD);
        result = read_piece(webgpu, stream, stage, at, data + done, piece);
    }
    wr_webgpu_stage_put(webgpu, stage);
    return result;
}

weir_result wr_webgpu_read(weir_driver *driver, weir_driver_stream stream,
                           uint64_t address, void *data, uint64_t bytes)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    place from;
    if (bytes == 0) {
        return WEIR_OK;
    }
    wr_lock_take(&webgpu->lock);
    weir_result result = find_place(webgpu, "read", address, bytes, &from);
    if (result == WEIR_OK) {
        result = read_all(webgpu, wr_webgpu_stream_of(stream), from, data, bytes);
    }
    wr_lock_leave(&webgpu->lock);
    return result;
}

/* ---- writes ---- */

/* Whole words around a write: those at its ends are mixed of what is there and the data.
 *
 *     words     |first | ................ | last |
 *     data         |--------------------------|
 *               skipped                        */
typedef struct wrapped {
    const char *data;
    uint64_t bytes;
    uint64_t skipped; /* bytes before the data in the first word */
    char first[WORD];
    char last[WORD];
} wrapped;

/* Bytes [begin, end) of the words, by runs: before the data, the data, after it. */
static void unwrap(const wrapped *from, uint64_t begin, uint64_t end, char *to)
{
    uint64_t data_end = from->skipped + from->bytes;
    for (uint64_t i = begin; i < end && i < from->skipped; i++) {
        to[i - begin] = from->first[i];
    }
    uint64_t first = begin > from->skipped ? begin : from->skipped;
    uint64_t last = least(end, data_end);
    if (first < last) {
        memcpy(to + (first - begin), from->data + (first - from->skipped), last - first);
    }
    for (uint64_t i = data_end > begin ? data_end : begin; i < end; i++) {
        to[i - begin] = from->last[i % WORD];
    }
}

static weir_result read_ends(wr_webgpu *webgpu, wr_webgpu_stream *stream, place to,
                             wrapped *words)
{
    uint64_t end = to.offset + words->bytes;
    if (words->skipped != 0) {
        place at = {to.page, down(to.offset)};
        WR_TRY(read_all(webgpu, stream, at, words->first, WORD));
    }
    if (end % WORD != 0) {
        place at = {to.page, down(end)};
        WR_TRY(read_all(webgpu, stream, at, words->last, WORD));
    }
    return WEIR_OK;
}

/* A stage is found before the encoder: looking for it may submit. */
static weir_result write_words(wr_webgpu *webgpu, wr_webgpu_stream *stream, place to,
                               const wrapped *words)
{
    uint64_t all = up(words->skipped + words->bytes);
    to.offset = down(to.offset);
    for (uint64_t done = 0; done < all;) {
        wr_webgpu_room room;
        wr_wg_encoder encoder;
        WR_TRY(wr_webgpu_stage_write(webgpu, all - done, &room));
        unwrap(words, done, done + room.bytes, room.at);
        WR_TRY(wr_webgpu_encode(webgpu, "write", stream, &encoder));
        webgpu->api.encoder_copy(encoder, room.buffer, room.offset, to.page->buffer,
                                 to.offset + done, room.bytes);
        to.page->is_touched = true;
        done += room.bytes;
    }
    return WEIR_OK;
}

/* Inside the lock. */
static weir_result write_all(wr_webgpu *webgpu, wr_webgpu_stream *stream, place to,
                             const void *data, uint64_t bytes)
{
    wrapped words = {.data = data, .bytes = bytes, .skipped = to.offset % WORD};
    WR_TRY(read_ends(webgpu, stream, to, &words));
    return write_words(webgpu, stream, to, &words);
}

weir_result wr_webgpu_write(weir_driver *driver, weir_driver_stream stream,
                            uint64_t address, const void *data, uint64_t bytes)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    place to;
    if (bytes == 0) {
        return WEIR_OK;
    }
    wr_lock_take(&webgpu->lock);
    weir_result result = find_place(webgpu, "write", address, bytes, &to);
    if (result == WEIR_OK) {
        result = write_all(webgpu, wr_webgpu_stream_of(stream), to, data, bytes);
    }
    wr_lock_leave(&webgpu->lock);
    return result;
}

/* ---- copies ---- */

typedef struct copy {
    place to;
    place from;
    uint64_t bytes;
    bool is_backward; /* the end first, as the places overlap */
} copy;

static copy part(const copy *whole, uint64_t at, uint64_t bytes)
{
    copy result = *whole;
    result.to.offset += at;
    result.from.offset += at;
    result.bytes = bytes;
    return result;
}

/* Part number `index` of at most `most` bytes, in the order of the copy. */
static copy piece(const copy *whole, uint64_t done, uint64_t most)
{
    uint64_t bytes = least(whole->bytes - done, most);
    return part(whole, whole->is_backward ? whole->bytes - done - bytes : done, bytes);
}

static weir_result copy_inside(wr_webgpu *webgpu, wr_webgpu_stream *stream,
                               const copy *what)
{
    for (uint64_t done = 0; done < what->bytes;) {
        wr_wg_encoder encoder;
        wr_wg_buffer scratch;
        copy one = piece(what, done, WR_WEBGPU_STAGE_BYTES);
        WR_TRY(wr_webgpu_stage_scratch(webgpu, &scratch));
        WR_TRY(wr_webgpu_encode(webgpu, "copy", stream, &encoder));
        webgpu->api.encoder_copy(encoder, one.from.page->buffer, one.from.offset, scratch,
                                 0, one.bytes);
        webgpu->api.encoder_copy(encoder, scratch, 0, one.to.page->buffer, one.to.offset,
                                 one.bytes);
        done += one.bytes;
    }
    return WEIR_OK;
}

/* Whole words at whole words. */
static weir_result copy_words(wr_webgpu *webgpu, wr_webgpu_stream *stream,
                              const copy *what)
{
    wr_wg_encoder encoder;
    what->to.page->is_touched = true;
    what->from.page->is_touched = true;
    if (what->to.page == what->from.page) {
        return copy_inside(webgpu, stream, what);
    }
    WR_TRY(wr_webgpu_encode(webgpu, "copy", stream, &encoder));
    webgpu->api.encoder_copy(encoder, what->from.page->buffer, what->from.offset,
                             what->to.page->buffer, what->to.offset, what->bytes);
    return WEIR_OK;
}

static weir_result copy_by_host(wr_webgpu *webgpu, wr_webgpu_stream *stream,
                                const copy *what)
{
    uint64_t most = least(what->bytes, WR_WEBGPU_STAGE_BYTES - WORD);
    char *bytes = wr_host_alloc(most + 1);
    if (bytes == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "webgpu: copy: no host memory");
    }
    weir_result result = WEIR_OK;
    for (uint64_t done = 0; done < what->bytes && result == WEIR_OK;) {
        copy one = piece(what, done, most);
        result = read_all(webgpu, stream, one.from, bytes, one.bytes);
        if (result == WEIR_OK) {
            result = write_all(webgpu, stream, one.to, bytes, one.bytes);
        }
        done += one.bytes;
    }
    wr_host_free(bytes);
    return result;
}

/* Inside the lock. */
static weir_result copy_all(wr_webgpu *webgpu, wr_webgpu_stream *stream, const copy *what)
{
    if (what->to.offset % WORD != 0 || what->from.offset % WORD != 0) {
        return copy_by_host(webgpu, stream, what);
    }
    copy words = part(what, 0, down(what->bytes));
    copy rest = part(what, words.bytes, what->bytes - words.bytes);
    if (what->is_backward) {
        WR_TRY(copy_by_host(webgpu, stream, &rest));
        return copy_words(webgpu, stream, &words);
    }
    WR_TRY(copy_words(webgpu, stream, &words));
    return copy_by_host(webgpu, stream, &rest);
}

weir_result wr_webgpu_copy(weir_driver *driver, weir_driver_stream stream, uint64_t to,
                           uint64_t from, uint64_t bytes)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    copy what = {.bytes = bytes, .is_backward = to > from};
    if (bytes == 0 || to == from) {
        return WEIR_OK;
    }
    wr_lock_take(&webgpu->lock);
    weir_result result = find_place(webgpu, "copy", to, bytes, &what.to);
    if (result == WEIR_OK) {
        result = find_place(webgpu, "copy", from, bytes, &what.from);
    }
    if (result == WEIR_OK) {
        result = copy_all(webgpu, wr_webgpu_stream_of(stream), &what);
    }
    wr_lock_leave(&webgpu->lock);
    return result;
}
