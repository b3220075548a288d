/* SPDX-License-Identifier: MIT */
/* The trace parser. A record either adds one operation or stops everything with a reason;
 * slots of freed buffers are used again first, so that a replay's table is as small as it
 * can be.
 *
 * Invariant between lines: live_bytes is the sum over live ids, and slot_count less
 * free_slot_count is how many of them have a slot. */
#include "parser.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part of a line. */
typedef struct word {
    const char *text;
    size_t bytes;
} word;

static bool fail(wr_trace_parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool fail(wr_trace_parser *parser, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parser->error->reason, sizeof parser->error->reason, format, arguments);
    va_end(arguments);
    return false;
}

static bool fail_for_memory(wr_trace_parser *parser)
{
    return fail(parser, "the host has no memory for a trace of this length");
}

/* The array, larger if `count` elements fill it; NULL (and the old one unchanged) when
 * the host has no memory. */
static void *with_room(void *array, size_t count, size_t *capacity, size_t element_bytes)
{
    if (count < *capacity) {
        return array;
    }
    size_t grown = *capacity < 64 ? 64 : *capacity * 2;
    void *larger =
        grown > SIZE_MAX / element_bytes ? NULL : realloc(array, grown * element_bytes);
    if (larger != NULL) {
        *capacity = grown;
    }
    return larger;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the next word off the line; empty at its end. */
static word next_word(word *line)
{
    while (line->bytes > 0 && is_blank(line->text[0])) {
        line->text++;
        line->bytes--;
    }
    word found = {line->text, 0};
    while (line->bytes > 0 && !is_blank(line->text[0])) {
        line->text++;
        line->bytes--;
        found.bytes++;
    }
    return found;
}

/* For messages: what is printable of a word, cut to a few characters. */
static const char *shown(word text, char copy[24])
{
    size_t length = text.bytes < 20 ? text.bytes : 20;
    for (size_t i = 0; i < length; i++) {
        copy[i] = text.text[i] >= ' ' && text.text[i] <= '~' ? text.text[i] : '?';
    }
    strcpy(copy + length, length < text.bytes ? "..." : "");
    return copy;
}

static bool next_number(wr_trace_parser *parser, word *line, const char *what,
                        uint64_t *number)
{
    char copy[24];
    word digits = next_word(line);
    if (digits.bytes == 0) {
        return fail(parser,
                    "%s is missing; a record is 'a ID BYTES STREAM' or 'f ID STREAM'",
                    what);
    }
    uint64_t value = 0;
    for (size_t i = 0; i < digits.bytes; i++) {
        unsigned digit = (unsigned)(unsigned char)digits.text[i] - '0';
        if (digit > 9) {
            return fail(parser, "%s '%s' is not a whole number", what,
                        shown(digits, copy));
        }
        if (value > (UINT64_MAX - digit) / 10) {
            return fail(parser, "%s %s is too large, at most 2^64 - 1 can be", what,
                        shown(digits, copy));
        }
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

static bool no_more(wr_trace_parser *parser, word *line)
{
    char copy[24];
    word rest = next_word(line);
    return rest.bytes == 0 ||
           fail(parser, "unexpected '%s' at the end", shown(rest, copy));
}

static bool add_op(wr_trace_parser *parser, wr_trace_op op)
{
    wr_trace_op *ops = with_room(parser->trace.ops, parser->trace.op_count,
                                 &parser->op_capacity, sizeof *ops);
    if (ops == NULL) {
        return fail_for_memory(parser);
    }
    parser->trace.ops = ops;
    ops[parser->trace.op_count++] = op;
    return true;
}

/* The dense number of the trace's stream, a new one if need be. */
static bool number_stream(wr_trace_parser *parser, uint64_t id, uint16_t *stream)
{
    wr_trace_id *entry = wr_trace_ids_get(&parser->streams, id);
    if (entry == NULL) {
        return fail_for_memory(parser);
    }
    if (entry->line == 0) {
        if (parser->trace.stream_count > UINT16_MAX) {
            return fail(parser,
                        "stream %" PRIu64 " is one too many, at most 65,536 can be", id);
        }
        entry->line = 1;
        entry->stream = (uint16_t)parser->trace.stream_count++;
    }
    *stream = entry->stream;
    return true;
}

static bool take_slot(wr_trace_parser *parser, uint32_t *slot)
{
    if (parser->free_slot_count > 0) {
        *slot = parser->free_slots[--parser->free_slot_count];
        return true;
    }
    if (parser->trace.slot_count == UINT32_MAX) {
        return fail(parser, "more than 4,294,967,294 buffers are live at once");
    }
    *slot = parser->trace.slot_count++;
    return true;
}

static bool give_slot(wr_trace_parser *parser, uint32_t slot)
{
    uint32_t *slots = with_room(parser->free_slots, parser->free_slot_count,
                                &parser->free_slot_capacity, sizeof *slots);
    if (slots == NULL) {
        return fail_for_memory(parser);
    }
    parser->free_slots = slots;
    slots[parser->free_slot_count++] = slot;
    return true;
}

static bool add_live_bytes(wr_trace_parser *parser, uint64_t bytes)
{
    if (bytes > UINT64_MAX - parser->live_bytes) {
        return fail(parser, "the live bytes pass 2^64");
    }
    parser->live_bytes += bytes;
    if (parser->live_bytes > parser->trace.peak_bytes) {
        parser->trace.peak_bytes = parser->live_bytes;
        parser->trace.peak_op = parser->trace.op_count;
    }
    return true;
}

static bool parse_alloc(wr_trace_parser *parser, word *line)
{
    uint64_t id, bytes, stream;
    wr_trace_op op = {.kind = WR_TRACE_KIND_NOTHING};
    if (!next_number(parser, line, "ID", &id) ||
        !next_number(parser, line, "BYTES", &bytes) ||
        !next_number(parser, line, "STREAM", &stream) || !no_more(parser, line) ||
        !number_stream(parser, stream, &op.stream)) {
        return false;
    }
    wr_trace_id *entry = wr_trace_ids_get(&parser->ids, id);
    if (entry == NULL) {
        return fail_for_memory(parser);
    }
    if (entry->is_live) {
        return fail(parser, "id %" PRIu64 " is live already, from line %" PRIu64, id,
                    entry->line);
    }
    if (bytes > 0) {
        op.kind = WR_TRACE_KIND_ALLOC;
        op.bytes = bytes;
        if (!add_live_bytes(parser, bytes) || !take_slot(parser, &op.slot)) {
            return false;
        }
    }
    *entry = (wr_trace_id){.id = id,
                           .line = parser->error->line,
                           .bytes = bytes,
                           .slot = op.slot,
                           .stream = op.stream,
                           .is_live = true};
    parser->trace.operation_count++;
    return add_op(parser, op);
}

/* The live entry that a free record names. */
static wr_trace_id *find_live(wr_trace_parser *parser, uint64_t id, uint64_t stream)
{
    wr_trace_id *entry = wr_trace_ids_find(&parser->ids, id);
    if (entry == NULL) {
        fail(parser, "id %" PRIu64 " was never allocated", id);
        return NULL;
    }
    if (!entry->is_live) {
        fail(parser, "id %" PRIu64 " is freed already, by line %" PRIu64, id,
             entry->line);
        return NULL;
    }
    const wr_trace_id *known = wr_trace_ids_find(&parser->streams, stream);
    if (known == NULL || known->stream != entry->stream) {
        fail(parser, "id %" PRIu64 " is not of stream %" PRIu64 ", see line %" PRIu64, id,
             stream, entry->line);
        return NULL;
    }
    return entry;
}

static bool parse_free(wr_trace_parser *parser, word *line)
{
    uint64_t id, stream;
    if (!next_number(parser, line, "ID", &id) ||
        !next_number(parser, line, "STREAM", &stream) || !no_more(parser, line)) {
        return false;
    }
    wr_trace_id *entry = find_live(parser, id, stream);
    if (entry == NULL) {
        return false;
    }
    wr_trace_op op = {.bytes = entry->bytes,
                      .slot = entry->slot,
                      .stream = entry->stream,
                      .kind = WR_TRACE_KIND_NOTHING};
    if (entry->bytes > 0) {
        op.kind = WR_TRACE_KIND_FREE;
        if (!give_slot(parser, entry->slot)) {
            return false;
        }
    }
    entry->is_live = false;
    entry->line = parser->error->line;
    parser->live_bytes -= entry->bytes;
    parser->trace.operation_count++;
    return add_op(parser, op);
}

static bool parse_line(wr_trace_parser *parser, word line)
{
    char copy[24];
    if (line.bytes > 0 && line.text[0] == '#') {
        return true;
    }
    word record = next_word(&line);
    if (record.bytes == 0) {
        return true;
    }
    switch (record.bytes == 1 ? record.text[0] : '?') {
    case 'a':
        return parse_alloc(parser, &line);
    case 'f':
        return parse_free(parser, &line);
    case 'm':
        parser->trace.mark_count++;
        return add_op(parser, (wr_trace_op){.kind = WR_TRACE_KIND_MARK});
    default:
        return fail(parser, "unknown record '%s'; a line starts with a, f, m or #",
                    shown(record, copy));
    }
}

bool wr_trace_parser_init(wr_trace_parser *parser, wr_trace_error *error)
{
    *parser = (wr_trace_parser){.error = error};
    *error = (wr_trace_error){0};
    uint16_t stream;
    return number_stream(parser, 0, &stream);
}

size_t wr_trace_parser_feed(wr_trace_parser *parser, const char *text, size_t text_bytes,
                            bool is_end)
{
    size_t used = 0;
    while (used < text_bytes) {
        const char *end = memchr(text + used, '\n', text_bytes - used);
        size_t length = end == NULL ? text_bytes - used : (size_t)(end - (text + used));
        if (end == NULL && !is_end && length <= WR_TRACE_MAX_LINE_BYTES) {
            break;
        }
        parser->error->line++;
        if (length > WR_TRACE_MAX_LINE_BYTES) {
            fail(parser, "the line is longer than %d bytes", WR_TRACE_MAX_LINE_BYTES);
            return SIZE_MAX;
        }
        if (!parse_line(parser, (word){text + used, length})) {
            return SIZE_MAX;
        }
        used += length + (end != NULL);
    }
    return used;
}

bool wr_trace_parser_end(wr_trace_parser *parser, wr_trace *trace)
{
    size_t op_count = parser->trace.op_count;
    for (size_t i = 0; i < parser->ids.capacity; i++) {
        const wr_trace_id *entry = &parser->ids.entries[i];
        if (entry->is_live && entry->bytes > 0 &&
            !add_op(parser, (wr_trace_op){.bytes = entry->bytes,
                                          .slot = entry->slot,
                                          .stream = entry->stream,
                                          .kind = WR_TRACE_KIND_FREE})) {
            return false;
        }
    }
    parser->trace.tail_count = parser->trace.op_count - op_count;
    parser->trace.op_count = op_count;
    *trace = parser->trace;
    parser->trace = (wr_trace){0};
    return true;
}

void wr_trace_parser_finish(wr_trace_parser *parser)
{
    wr_trace_finish(&parser->trace);
    wr_trace_ids_finish(&parser->ids);
    free(parser->free_slots);
    wr_trace_ids_finish(&parser->streams);
}
