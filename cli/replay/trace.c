/* SPDX-License-Identifier: MIT */
/* Traces from memory and from files. A file passes through a buffer of whole lines; zlib
 * reads plain files as they are. */
#include "trace.h"

#include "parser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

/* Room for many lines of the greatest length. */
#define CHUNK_BYTES (1 << 18)

bool wr_trace_parse(const char *text, size_t text_bytes, wr_trace *trace,
                    wr_trace_error *error)
{
    wr_trace_parser parser;
    bool ok = wr_trace_parser_init(&parser, error) &&
              wr_trace_parser_feed(&parser, text, text_bytes, true) != SIZE_MAX &&
              wr_trace_parser_end(&parser, trace);
    wr_trace_parser_finish(&parser);
    return ok;
}

/* A file being read. */
typedef struct source {
    gzFile file;
    double file_bytes;
    void (*progress)(double share);
    char chunk[CHUNK_BYTES];
} source;

/* The error line is the one that could not be read to its end. */
static bool fail_to_read(source *from, wr_trace_error *error)
{
    int code = Z_OK;
    const char *text = gzerror(from->file, &code);
    error->line++;
    snprintf(error->reason, sizeof error->reason, "%s",
             code == Z_ERRNO        ? strerror(errno)
             : code == Z_BUF_ERROR  ? "the gzip data end too early; the file is cut off"
             : code == Z_MEM_ERROR  ? "the host has no memory to decompress it"
             : code == Z_DATA_ERROR ? "the gzip data are corrupt"
                                    : text);
    return false;
}

static bool read_lines(source *from, wr_trace_parser *parser)
{
    size_t kept = 0;
    for (;;) {
        int got = gzread(from->file, from->chunk + kept, (unsigned)(CHUNK_BYTES - kept));
        int code = Z_OK;
        gzerror(from->file, &code);
        bool is_good = got >= 0 && (code == Z_OK || code == Z_STREAM_END);
        size_t filled = kept + (got > 0 ? (size_t)got : 0);
        size_t used =
            wr_trace_parser_feed(parser, from->chunk, filled, is_good && got == 0);
        if (used == SIZE_MAX) {
            return false;
        }
        if (!is_good) {
            return fail_to_read(from, parser->error);
        }
        if (got == 0) {
            return true;
        }
        kept = filled - used;
        memmove(from->chunk, from->chunk + used, kept);
        if (from->progress != NULL && from->file_bytes > 0) {
            from->progress((double)gzoffset(from->file) / from->file_bytes);
        }
    }
}

static bool fail_to_open(const char *reason, wr_trace_error *error)
{
    error->line = 0;
    snprintf(error->reason, sizeof error->reason, "cannot read it: %s", reason);
    return false;
}

static bool source_open(source *from, const char *path, wr_trace_error *error)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return fail_to_open(strerror(errno), error);
    }
    if (S_ISDIR(status.st_mode)) {
        return fail_to_open("it is a folder", error);
    }
    from->file_bytes = S_ISREG(status.st_mode) ? (double)status.st_size : 0;
    errno = 0;
    from->file = gzopen(path, "rb");
    return from->file != NULL ||
           fail_to_open(errno == 0 ? "the host has no memory" : strerror(errno), error);
}

bool wr_trace_read(const char *path, void (*progress)(double share), wr_trace *trace,
                   wr_trace_error *error)
{
    source *from = calloc(1, sizeof *from);
    if (from == NULL) {
        return fail_to_open("the host has no memory", error);
    }
    from->progress = progress;
    if (!source_open(from, path, error)) {
        free(from);
        return false;
    }
    wr_trace_parser parser;
    bool ok = wr_trace_parser_init(&parser, error) && read_lines(from, &parser) &&
              wr_trace_parser_end(&parser, trace);
    wr_trace_parser_finish(&parser);
    gzclose_r(from->file);
    free(from);
    return ok;
}

void wr_trace_finish(wr_trace *trace)
{
    free(trace->ops);
    *trace = (wr_trace){0};
}
