/* SPDX-License-Identifier: MIT */
/* A parsed scenario: its statements in the order of the file, blocks linked both ways. */
#ifndef WEIR_CLI_SCENARIO_PROGRAM_H
#define WEIR_CLI_SCENARIO_PROGRAM_H

#include "expression.h"

typedef enum wr_scn_kind {
    WR_SCN_NONE = 0,
    /* settings */
    WR_SCN_CAPACITY = 1,
    WR_SCN_CONTEXT = 2,
    WR_SCN_GRANULE = 3,
    WR_SCN_PRESET = 4,
    WR_SCN_LIMIT = 5,
    WR_SCN_SET = 6,
    WR_SCN_LETS_GO = 7,
    /* actions */
    WR_SCN_ALLOC = 8,
    WR_SCN_FREE = 9,
    WR_SCN_USE = 10,
    WR_SCN_FINISH = 11,
    WR_SCN_SYNC = 12,
    WR_SCN_CLEANUP = 13,
    WR_SCN_ADVANCE = 14,
    WR_SCN_CLOSE = 15,
    WR_SCN_OTHER = 16,
    WR_SCN_OUTSIDE = 17,
    WR_SCN_FAIL = 18,
    WR_SCN_CAPTURE_BEGIN = 19,
    WR_SCN_CAPTURE_END = 20,
    WR_SCN_CAPTURE_ABORT = 21,
    WR_SCN_DESTROY = 22,
    WR_SCN_WINDOW_BEGIN = 23,
    WR_SCN_WINDOW_END = 24,
    WR_SCN_SHUTDOWN = 25,
    WR_SCN_MARK = 26,
    WR_SCN_RANDOM = 27,
    WR_SCN_LET = 28,
    /* blocks */
    WR_SCN_FOR = 29,
    WR_SCN_REPEAT = 30,
    WR_SCN_END = 31,
    WR_SCN_FORK = 32,
    WR_SCN_EXIT = 33,
    /* checks */
    WR_SCN_EXPECT_NUMBER = 34,
    WR_SCN_EXPECT_OVERLAPS = 35,
    WR_SCN_EXPECT_APART = 36,
    WR_SCN_EXPECT_SAYS = 37,
    WR_SCN_EXPECT_SILENT = 38,
    WR_SCN_EXPECT_ERROR = 39,
    WR_SCN_KIND_COUNT
} wr_scn_kind;

typedef enum wr_scn_comparison {
    WR_SCN_EQUAL = 0,
    WR_SCN_UNEQUAL = 1,
    WR_SCN_AT_MOST = 2,
    WR_SCN_AT_LEAST = 3,
    WR_SCN_BELOW = 4,
    WR_SCN_ABOVE = 5,
} wr_scn_comparison;

bool wr_scn_kind_is_setting(wr_scn_kind kind);

/* "==", "<="...; static text. */
const char *wr_scn_comparison_sign(wr_scn_comparison comparison);

/* Members of weir_device_desc that `set` can name. */
#define WR_SCN_NUMBER_OPTIONS(X)                                                         \
    X(idle_ms)                                                                           \
    X(keep_bytes)                                                                        \
    X(limit_bytes)
#define WR_SCN_FLAG_OPTIONS(X)                                                           \
    X(no_idle)                                                                           \
    X(no_wait)                                                                           \
    X(trust_uses)                                                                        \
    X(no_granules)

typedef enum wr_scn_option {
#define WR_SCN_OPTION_ENUM(member) WR_SCN_OPTION_##member,
    WR_SCN_NUMBER_OPTIONS(WR_SCN_OPTION_ENUM) WR_SCN_FLAG_OPTIONS(WR_SCN_OPTION_ENUM)
#undef WR_SCN_OPTION_ENUM
} wr_scn_option;

/* Which members a kind uses is said beside each; others are absent. */
typedef struct wr_scn_statement {
    wr_scn_kind kind;
    uint32_t line;
    int choice;     /* fails: a weir_result; fail: weir_sim_op; lets_go: weir_sim_lets_go;
                       set: wr_scn_option; expect: wr_scn_comparison; cleanup: 1 = wait */
    size_t partner; /* blocks: the statement at the other end */
    wr_scn_text name;   /* buffer, variable, mark, graph, preset, expected text */
    wr_scn_text other;  /* the second buffer of overlaps and apart */
    wr_scn_text stream; /* absent: the default one, or all */
    wr_scn_text tag;
    /* alloc: size. random: seed, from, to. for: from, to. cleanup: keep, at_most. fail:
     * count, after. expect: left, right. Else the one number. */
    wr_scn_expr number[3];
} wr_scn_statement;

typedef struct wr_scn_program {
    char *text; /* the whole file; everything above points into it */
    wr_scn_statement *statements;
    size_t count, capacity;
    wr_scn_ops ops;
} wr_scn_program;

/* Larger texts are refused. */
#define WR_SCN_MAX_TEXT_BYTES ((size_t)4 << 20)
#define WR_SCN_BLOCK_DEPTH 32

/* Parses a copy of `text`. On failure `program` is left empty. To be finished when
 * parsed. */
bool wr_scn_program_parse(wr_scn_program *program, const char *text, size_t bytes,
                          wr_scn_error *error);

void wr_scn_program_finish(wr_scn_program *program);

#endif
