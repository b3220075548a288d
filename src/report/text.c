/* SPDX-License-Identifier: MIT */
/* No state, no lock. */
#include "text.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *weir_format_bytes(uint64_t bytes, char text[24])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    if (bytes == WEIR_UNKNOWN_BYTES) {
        snprintf(text, WR_BYTES_TEXT, "n/a");
        return text;
    }
    if (bytes < 1024) {
        snprintf(text, WR_BYTES_TEXT, "%u B", (unsigned)bytes);
        return text;
    }
    for (unsigned unit = 0;; unit++) {
        unsigned shift = 10 * (unit + 1);
        uint64_t rest = bytes & ((UINT64_C(1) << shift) - 1);
        uint64_t tenths =
            (bytes >> shift) * 10 + ((rest * 10 + (UINT64_C(1) << (shift - 1))) >> shift);
        if (tenths < 10240 || unit + 1 == sizeof units / sizeof units[0]) {
            snprintf(text, WR_BYTES_TEXT, "%" PRIu64 ".%u %s", tenths / 10,
                     (unsigned)(tenths % 10), units[unit]);
            return text;
        }
    }
}

char *wr_format_signed_bytes(int64_t bytes, char text[WR_BYTES_TEXT])
{
    if (bytes >= 0) {
        return weir_format_bytes((uint64_t)bytes, text);
    }
    char magnitude[WR_BYTES_TEXT];
    snprintf(text, WR_BYTES_TEXT, "-%.*s", WR_BYTES_TEXT - 2,
             weir_format_bytes(0 - (uint64_t)bytes, magnitude));
    return text;
}

/* Whether a decoded value needed all its bytes and is a character at all. */
static bool is_character(uint32_t code, size_t length)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return code >= least[length] && code <= 0x10FFFF &&
           !(code >= 0xD800 && code <= 0xDFFF);
}

size_t wr_utf8_length(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned char first = bytes[0];
    if (first < 0x80) {
        return 1;
    }
    size_t length = first >= 0xF8 ? 0 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (length == 0 || first < 0xC0) {
        return 0;
    }
    uint32_t code = first & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return 0;
        }
        code = code << 6 | (bytes[i] & 0x3Fu);
    }
    return is_character(code, length) ? length : 0;
}

/* ASCII controls, delete, and the controls U+0080 to U+009F, which terminals obey too. */
static bool is_control(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    return first < 0x20 || first == 0x7F ||
           (first == 0xC2 && (unsigned char)text[1] < 0xA0);
}

char *wr_text_printable(const char *from, char *to, size_t to_bytes)
{
    size_t used = 0;
    while (*from != '\0') {
        size_t length = wr_utf8_length(from);
        const char *piece = length == 0 || is_control(from) ? "?" : from;
        size_t piece_bytes = piece == from ? length : 1;
        if (used + piece_bytes >= to_bytes) {
            break;
        }
        memcpy(to + used, piece, piece_bytes);
        used += piece_bytes;
        from += length == 0 ? 1 : length;
    }
    to[used] = '\0';
    return to;
}

size_t wr_text_width(const char *printable)
{
    size_t width = 0;
    for (; *printable != '\0'; printable++) {
        width += ((unsigned char)*printable & 0xC0) != 0x80;
    }
    return width;
}

void wr_text_init(wr_text *text, char *memory, size_t capacity_bytes)
{
    WR_ASSERT(capacity_bytes > 0);
    text->text = memory;
    text->capacity_bytes = capacity_bytes;
    text->used_bytes = 0;
    memory[0] = '\0';
}

bool wr_text_add(wr_text *text, size_t spare_bytes, const char *format, ...)
{
    char *end = text->text + text->used_bytes;
    size_t room = text->capacity_bytes - text->used_bytes;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(end, room, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length + spare_bytes >= room) {
        *end = '\0';
        return false;
    }
    text->used_bytes += (size_t)length;
    return true;
}
