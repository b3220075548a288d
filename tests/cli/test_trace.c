/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "replay/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static wr_trace parsed(const char *text)
{
    wr_trace trace = {0};
    wr_trace_error error;
    if (!wr_trace_parse(text, strlen(text), &trace, &error)) {
        fail_msg("line %d: %s", (int)error.line, error.reason);
    }
    return trace;
}

static void refused(const char *text, uint64_t line, const char *reason)
{
    wr_trace trace = {.op_count = 77};
    wr_trace_error error;
    assert_false(wr_trace_parse(text, strlen(text), &trace, &error));
    assert_string_equal(error.reason, reason);
    assert_int_equal(error.line, line);
    assert_int_equal(trace.op_count, 77);
}

static void trace__counts_operations_marks_and_the_peak(void **state)
{
    (void)state;
    wr_trace trace = parsed("# two at once, then one\n"
                            "a 10 100 0\n"
                            "a 11 50 0\n"
                            "f 10 0\n"
                            "m first step\n"
                            "\n"
                            "a 12 20 0\n");
    assert_int_equal(trace.op_count, 5);
    assert_int_equal(trace.operation_count, 4);
    assert_int_equal(trace.mark_count, 1);
    assert_int_equal(trace.peak_bytes, 150);
    assert_int_equal(trace.peak_op, 1);
    assert_int_equal(trace.stream_count, 1);
    wr_trace_finish(&trace);
    assert_null(trace.ops);
}

static void trace__uses_slots_again_and_frees_the_rest_in_its_tail(void **state)
{
    (void)state;
    wr_trace trace = parsed("a 1 8 0\na 2 8 0\nf 1 0\na 3 16 0\nf 2 0\n");
    assert_int_equal(trace.slot_count, 2);
    assert_int_equal(trace.ops[3].slot, trace.ops[0].slot);
    assert_int_equal(trace.tail_count, 1);
    const wr_trace_op *tail = &trace.ops[trace.op_count];
    assert_int_equal(tail->kind, WR_TRACE_KIND_FREE);
    assert_int_equal(tail->slot, trace.ops[3].slot);
    assert_int_equal(tail->bytes, 16);
    wr_trace_finish(&trace);
}

static void trace__lets_an_id_live_again_after_its_free(void **state)
{
    (void)state;
    wr_trace trace = parsed("a 1 8 0\nf 1 0\na 1 9 0\nf 1 0\n");
    assert_int_equal(trace.operation_count, 4);
    assert_int_equal(trace.peak_bytes, 9);
    assert_int_equal(trace.tail_count, 0);
    wr_trace_finish(&trace);
}

static void trace__counts_zero_bytes_but_takes_nothing_for_them(void **state)
{
    (void)state;
    wr_trace trace = parsed("a 1 0 0\nf 1 0\na 2 0 0\n");
    assert_int_equal(trace.operation_count, 3);
    assert_int_equal(trace.slot_count, 0);
    assert_int_equal(trace.peak_bytes, 0);
    assert_int_equal(trace.tail_count, 0);
    for (size_t i = 0; i < trace.op_count; i++) {
        assert_int_equal(trace.ops[i].kind, WR_TRACE_KIND_NOTHING);
    }
    wr_trace_finish(&trace);
}

static void trace__numbers_streams_in_order_of_mention_with_0_first(void **state)
{
    (void)state;
    wr_trace trace =
        parsed("a 1 8 900\na 2 8 18446744073709551615\na 3 8 0\na 4 8 900\n");
    assert_int_equal(trace.stream_count, 3);
    assert_int_equal(trace.ops[0].stream, 1);
    assert_int_equal(trace.ops[1].stream, 2);
    assert_int_equal(trace.ops[2].stream, 0);
    assert_int_equal(trace.ops[3].stream, 1);
    wr_trace_finish(&trace);
}

static void trace__takes_blanks_returns_and_a_last_line_without_newline(void **state)
{
    (void)state;
    wr_trace trace = parsed("  a\t1  8 0 \r\n\r\nm\nf 1 0");
    assert_int_equal(trace.operation_count, 2);
    assert_int_equal(trace.mark_count, 1);
    wr_trace_finish(&trace);
    trace = parsed("");
    assert_int_equal(trace.op_count, 0);
    wr_trace_finish(&trace);
}

static void trace__refuses_malformed_records(void **state)
{
    (void)state;
    refused("q 1\n", 1, "unknown record 'q'; a line starts with a, f, m or #");
    refused("a 1 8 0\nalloc 2 8 0\n", 2,
            "unknown record 'alloc'; a line starts with a, f, m or #");
    refused("\x01\n", 1, "unknown record '?'; a line starts with a, f, m or #");
    refused("a 1 8\n", 1,
            "STREAM is missing; a record is 'a ID BYTES STREAM' or 'f ID STREAM'");
    refused("a 1 8 0 0\n", 1, "unexpected '0' at the end");
    refused("a 1 8x 0\n", 1, "BYTES '8x' is not a whole number");
    refused("a -1 8 0\n", 1, "ID '-1' is not a whole number");
    refused("f 1 0.5\n", 1, "STREAM '0.5' is not a whole number");
}

static void trace__refuses_numbers_that_do_not_fit(void **state)
{
    (void)state;
    refused("a 1 18446744073709551616 0\n", 1,
            "BYTES 18446744073709551616 is too large, at most 2^64 - 1 can be");
    refused("a 1 99999999999999999999999999 0\n", 1,
            "BYTES 99999999999999999999... is too large, at most 2^64 - 1 can be");
    refused("a 1 18446744073709551615 0\na 2 1 0\n", 2, "the live bytes pass 2^64");
}

static void trace__refuses_frees_of_what_is_not_live(void **state)
{
    (void)state;
    refused("f 7 0\n", 1, "id 7 was never allocated");
    refused("a 7 8 0\nf 7 0\n\nf 7 0\n", 4, "id 7 is freed already, by line 2");
    refused("a 7 8 0\na 7 8 0\n", 2, "id 7 is live already, from line 1");
    refused("a 7 8 1\nf 7 0\n", 2, "id 7 is not of stream 0, see line 1");
    refused("a 7 8 1\nf 7 2\n", 2, "id 7 is not of stream 2, see line 1");
}

static void trace__refuses_lines_without_end(void **state)
{
    (void)state;
    char text[6000];
    memset(text, '#', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refused(text, 1, "the line is longer than 4096 bytes");
}

static void trace__refuses_one_stream_too_many(void **state)
{
    (void)state;
    size_t room = 65536 * 24, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    for (unsigned i = 1; i <= 65536; i++) {
        used += (size_t)snprintf(text + used, room - used, "a %u 1 %u\n", i, i);
    }
    refused(text, 65536, "stream 65536 is one too many, at most 65,536 can be");
    free(text);
}

/* ---- files ---- */

/* A file with many lines, in gzip form if asked; its name is the caller's to unlink. */
static void write_file(char path[32], bool is_gzip)
{
    strcpy(path, "/tmp/weir-trace-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    gzFile file = gzdopen(descriptor, is_gzip ? "wb" : "wbT");
    assert_non_null(file);
    for (int i = 0; i < 60000; i++) {
        assert_true(gzprintf(file, "a %d %d 0\n", i, i * 7919 % 65536 + 1) > 0);
    }
    assert_int_equal(gzclose(file), Z_OK);
}

static void trace__reads_plain_and_gzip_files_alike(void **state)
{
    (void)state;
    uint64_t peaks[2];
    for (int is_gzip = 0; is_gzip <= 1; is_gzip++) {
        char path[32];
        wr_trace trace = {0};
        wr_trace_error error;
        write_file(path, is_gzip);
        assert_true(wr_trace_read(path, NULL, &trace, &error));
        unlink(path);
        assert_int_equal(trace.operation_count, 60000);
        peaks[is_gzip] = trace.peak_bytes;
        wr_trace_finish(&trace);
    }
    assert_int_equal(peaks[0], peaks[1]);
}

static void trace__says_that_a_gzip_file_is_cut_off(void **state)
{
    (void)state;
    char path[32];
    wr_trace trace = {0};
    wr_trace_error error;
    write_file(path, true);
    assert_int_equal(truncate(path, 50000), 0);
    assert_false(wr_trace_read(path, NULL, &trace, &error));
    unlink(path);
    assert_string_equal(error.reason, "the gzip data end too early; the file is cut off");
    assert_in_range(error.line, 1000, 60000);
}

static void trace__says_that_a_gzip_file_is_corrupt(void **state)
{
    (void)state;
    char path[32];
    wr_trace trace = {0};
    wr_trace_error error;
    write_file(path, true);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -8, SEEK_END), 0); /* the checksum */
    assert_int_equal(fwrite("\x55\xaa\x55\xaa", 1, 4, file), 4);
    fclose(file);
    assert_false(wr_trace_read(path, NULL, &trace, &error));
    unlink(path);
    assert_string_equal(error.reason, "the gzip data are corrupt");
}

static void trace__says_why_a_file_cannot_be_read(void **state)
{
    (void)state;
    wr_trace trace = {0};
    wr_trace_error error;
    assert_false(wr_trace_read("/nonexistent.trace", NULL, &trace, &error));
    assert_string_equal(error.reason, "cannot read it: No such file or directory");
    assert_int_equal(error.line, 0);
    assert_false(wr_trace_read("/tmp", NULL, &trace, &error));
    assert_string_equal(error.reason, "cannot read it: it is a folder");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace__counts_operations_marks_and_the_peak),
        cmocka_unit_test(trace__uses_slots_again_and_frees_the_rest_in_its_tail),
        cmocka_unit_test(trace__lets_an_id_live_again_after_its_free),
        cmocka_unit_test(trace__counts_zero_bytes_but_takes_nothing_for_them),
        cmocka_unit_test(trace__numbers_streams_in_order_of_mention_with_0_first),
        cmocka_unit_test(trace__takes_blanks_returns_and_a_last_line_without_newline),
        cmocka_unit_test(trace__refuses_malformed_records),
        cmocka_unit_test(trace__refuses_numbers_that_do_not_fit),
        cmocka_unit_test(trace__refuses_frees_of_what_is_not_live),
        cmocka_unit_test(trace__refuses_lines_without_end),
        cmocka_unit_test(trace__refuses_one_stream_too_many),
        cmocka_unit_test(trace__reads_plain_and_gzip_files_alike),
        cmocka_unit_test(trace__says_that_a_gzip_file_is_cut_off),
        cmocka_unit_test(trace__says_that_a_gzip_file_is_corrupt),
        cmocka_unit_test(trace__says_why_a_file_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
