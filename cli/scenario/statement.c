/* SPDX-License-Identifier: MIT */
/* Reading settings, actions and blocks: one small function for each form, one table line
 * for each statement. */
#include "statement.h"

#include <weir/sim.h>

#include <string.h>

typedef bool parse_fn(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement);

/* ---- pieces ---- */

static bool wide(wr_scn_line *line, wr_scn_ops *ops, wr_scn_expr *expr)
{
    return wr_scn_expr_parse(line, WR_SCN_EXPR_WIDE, ops, expr);
}

static bool tight(wr_scn_line *line, wr_scn_ops *ops, wr_scn_expr *expr)
{
    return wr_scn_expr_parse(line, WR_SCN_EXPR_TIGHT, ops, expr);
}

struct choice {
    const char *word;
    int value;
};

/* One word of a list that ends with NULL. */
static bool parse_choice(wr_scn_line *line, const struct choice *choices,
                         const char *what, int *value)
{
    wr_scn_text word = wr_scn_line_peek(line);
    for (; choices->word; choices++) {
        if (wr_scn_text_is(word, choices->word)) {
            *value = choices->value;
            return wr_scn_line_take(line, choices->word);
        }
    }
    return wr_scn_line_expected(line, what);
}

/* `KEY=...` may stand once: takes the key, or refuses a second one. */
static bool take_key(wr_scn_line *line, const char *key, bool is_set, bool *is_refused)
{
    if (!wr_scn_line_take(line, key)) {
        return false;
    }
    if (is_set) {
        *is_refused = !wr_scn_line_refuse(line, "'%s' stands twice", key);
        return false;
    }
    return true;
}

static bool parse_stream(wr_scn_line *line, wr_scn_statement *statement)
{
    return wr_scn_line_name(line, "a stream's name", &statement->stream);
}

/* ---- forms ---- */

static bool parse_nothing(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    (void)line, (void)ops, (void)statement;
    return true;
}

static bool parse_number(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    return wide(line, ops, &statement->number[0]);
}

static bool parse_buffer(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    (void)ops;
    return wr_scn_line_name(line, "a buffer's name", &statement->name);
}

static bool parse_mark(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    (void)ops;
    return wr_scn_line_mark(line, "a mark's name", &statement->name);
}

static bool parse_graph(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    (void)ops;
    return wr_scn_line_name(line, "a graph's name", &statement->name);
}

static bool parse_one_stream(wr_scn_line *line, wr_scn_ops *ops,
                             wr_scn_statement *statement)
{
    (void)ops;
    return parse_stream(line, statement);
}

/* ---- settings ---- */

static bool parse_preset(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    (void)ops;
    return wr_scn_line_name(line, "a preset's name", &statement->name);
}

static bool parse_lets_go(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    static const struct choice modes[] = {{"at_once", WEIR_SIM_LETS_GO_AT_ONCE},
                                          {"on_progress", WEIR_SIM_LETS_GO_ON_PROGRESS},
                                          {"after_work", WEIR_SIM_LETS_GO_AFTER_WORK},
                                          {"never", WEIR_SIM_LETS_GO_NEVER},
                                          {NULL, 0}};
    (void)ops;
    return parse_choice(line, modes, "at_once, on_progress, after_work or never",
                        &statement->choice);
}

/* A flag's `true` and `false` are 1 and 0; anything else is a number. */
static bool parse_flag(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    bool is_true = wr_scn_line_take_word(line, "true");
    if (is_true || wr_scn_line_take_word(line, "false")) {
        wr_scn_line digit = {is_true ? "1" : "0", NULL, line->number, line->error};
        digit.end = digit.at + 1;
        return wide(&digit, ops, &statement->number[0]);
    }
    return wide(line, ops, &statement->number[0]);
}

static bool parse_set(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
#define CHOICE(member) {#member, WR_SCN_OPTION_##member},
#define WORD(member) #member " "
    static const struct choice options[] = {WR_SCN_NUMBER_OPTIONS(CHOICE)
                                                WR_SCN_FLAG_OPTIONS(CHOICE){NULL, 0}};
    static const char what[] =
        "an option: " WR_SCN_NUMBER_OPTIONS(WORD) WR_SCN_FLAG_OPTIONS(WORD) "or preset";
#undef CHOICE
#undef WORD
    if (wr_scn_line_take_word(line, "preset")) {
        statement->kind = WR_SCN_PRESET;
        return parse_preset(line, ops, statement);
    }
    if (!parse_choice(line, options, what, &statement->choice)) {
        return false;
    }
    return statement->choice >= WR_SCN_OPTION_no_idle
               ? parse_flag(line, ops, statement)
               : wide(line, ops, &statement->number[0]);
}

/* ---- actions ---- */

static bool parse_fails(wr_scn_line *line, wr_scn_statement *statement)
{
#define CHOICE(name, number, sentence) {#name, number},
    static const struct choice results[] = { WEIR_RESULT_LIST(CHOICE){NULL, 0} };
#undef CHOICE
    if (statement->choice != WEIR_OK) {
        return wr_scn_line_refuse(line, "'fails' stands twice");
    }
    if (!parse_choice(line, results, "an error's name such as OUT_OF_MEMORY or LIMIT",
                      &statement->choice)) {
        return false;
    }
    return statement->choice != WEIR_OK || wr_scn_line_refuse(line, "OK is not an error");
}

static bool parse_alloc_option(wr_scn_line *line, wr_scn_statement *statement)
{
    bool is_refused = false;
    if (take_key(line, "stream=", statement->stream.start, &is_refused)) {
        return parse_stream(line, statement);
    }
    if (take_key(line, "tag=", statement->tag.start, &is_refused)) {
        return wr_scn_line_tag(line, &statement->tag);
    }
    if (is_refused) {
        return false;
    }
    if (wr_scn_line_take_word(line, "fails")) {
        return parse_fails(line, statement);
    }
    return wr_scn_line_expected(line, "stream=NAME, tag=TEXT or fails ERROR");
}

static bool parse_alloc(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    if (!wr_scn_line_name(line, "a buffer's name", &statement->name) ||
        !tight(line, ops, &statement->number[0])) {
        return false;
    }
    while (!wr_scn_line_is_done(line)) {
        if (!parse_alloc_option(line, statement)) {
            return false;
        }
    }
    return true;
}

static bool parse_use(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    if (!parse_buffer(line, ops, statement)) {
        return false;
    }
    if (!wr_scn_line_take(line, "stream=")) {
        return wr_scn_line_expected(line, "stream=NAME");
    }
    return parse_stream(line, statement);
}

static bool parse_finish(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    (void)ops;
    return wr_scn_line_take_word(line, "all") || parse_stream(line, statement);
}

static bool parse_sync(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    return wr_scn_line_is_done(line) || parse_finish(line, ops, statement);
}

static bool parse_cleanup(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    bool is_refused = false;
    while (!wr_scn_line_is_done(line)) {
        bool is_read;
        if (take_key(line, "keep=", statement->number[0].count > 0, &is_refused)) {
            is_read = tight(line, ops, &statement->number[0]);
        } else if (take_key(line, "at_most=", statement->number[1].count > 0,
                            &is_refused)) {
            is_read = tight(line, ops, &statement->number[1]);
        } else if (!is_refused && wr_scn_line_take_word(line, "wait")) {
            statement->choice = 1;
            is_read = true;
        } else {
            is_read = !is_refused &&
                      wr_scn_line_expected(line, "wait, keep=SIZE or at_most=SIZE");
        }
        if (!is_read) {
            return false;
        }
    }
    return true;
}

static bool parse_fail(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
#define CHOICE(name) {#name, WEIR_SIM_OP_##name},
#define WORD(name) #name " "
    static const struct choice calls[] = {
        WEIR_SIM_OP_LIST(CHOICE){"mem_info", WEIR_SIM_OP_memory_info},
        {"fence", WEIR_SIM_OP_fence_record},
        {NULL, 0}
    };
    static const char what[] = "a driver call: " WEIR_SIM_OP_LIST(WORD)
    "mem_info or fence";
#undef CHOICE
#undef WORD
    if (!parse_choice(line, calls, what, &statement->choice) ||
        !tight(line, ops, &statement->number[0])) {
        return false;
    }
    return !wr_scn_line_take(line, "after=") || tight(line, ops, &statement->number[1]);
}

static bool parse_capture(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    static const struct choice verbs[] = {{"begin", WR_SCN_CAPTURE_BEGIN},
                                          {"end", WR_SCN_CAPTURE_END},
                                          {"abort", WR_SCN_CAPTURE_ABORT},
                                          {NULL, 0}};
    int kind = WR_SCN_NONE;
    if (!parse_choice(line, verbs, "begin, end or abort", &kind)) {
        return false;
    }
    statement->kind = (wr_scn_kind)kind;
    switch (statement->kind) {
    case WR_SCN_CAPTURE_BEGIN:
        return parse_stream(line, statement);
    case WR_SCN_CAPTURE_END:
        return parse_graph(line, ops, statement);
    default:
        return true;
    }
}

static bool parse_window(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    (void)ops;
    if (wr_scn_line_take_word(line, "end")) {
        statement->kind = WR_SCN_WINDOW_END;
        return true;
    }
    if (!wr_scn_line_take_word(line, "persistent")) {
        return wr_scn_line_expected(line, "'persistent begin' or 'end'");
    }
    return wr_scn_line_take_word(line, "begin") || wr_scn_line_expected(line, "'begin'");
}

/* ---- variables and loops ---- */

static bool parse_let(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    if (!wr_scn_line_variable(line, "a variable's name", &statement->name)) {
        return false;
    }
    if (!wr_scn_line_take(line, "=")) {
        return wr_scn_line_expected(line, "'='");
    }
    return wide(line, ops, &statement->number[0]);
}

static bool parse_for(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    if (!wr_scn_line_variable(line, "a variable's name", &statement->name)) {
        return false;
    }
    if (!wr_scn_line_take_word(line, "in")) {
        return wr_scn_line_expected(line, "'in'");
    }
    if (!wide(line, ops, &statement->number[0])) {
        return false;
    }
    if (!wr_scn_line_take(line, "..")) {
        return wr_scn_line_expected(line, "'..'");
    }
    return wide(line, ops, &statement->number[1]);
}

static bool parse_random(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    return wr_scn_line_variable(line, "a variable's name", &statement->name) &&
           tight(line, ops, &statement->number[0]) &&
           tight(line, ops, &statement->number[1]) &&
           tight(line, ops, &statement->number[2]);
}

/* ---- the table ---- */

static const struct {
    const char *word;
    wr_scn_kind kind; /* may be made more exact by `parse` */
    parse_fn *parse;
} statements[] = {
    {"capacity", WR_SCN_CAPACITY, parse_number},
    {"context", WR_SCN_CONTEXT, parse_number},
    {"granule", WR_SCN_GRANULE, parse_number},
    {"preset", WR_SCN_PRESET, parse_preset},
    {"limit", WR_SCN_LIMIT, parse_number},
    {"set", WR_SCN_SET, parse_set},
    {"lets_go", WR_SCN_LETS_GO, parse_lets_go},
    {"alloc", WR_SCN_ALLOC, parse_alloc},
    {"free", WR_SCN_FREE, parse_buffer},
    {"use", WR_SCN_USE, parse_use},
    {"finish", WR_SCN_FINISH, parse_finish},
    {"sync", WR_SCN_SYNC, parse_sync},
    {"cleanup", WR_SCN_CLEANUP, parse_cleanup},
    {"advance", WR_SCN_ADVANCE, parse_number},
    {"close", WR_SCN_CLOSE, parse_one_stream},
    {"other", WR_SCN_OTHER, parse_number},
    {"outside", WR_SCN_OUTSIDE, parse_number},
    {"fail", WR_SCN_FAIL, parse_fail},
    {"capture", WR_SCN_CAPTURE_BEGIN, parse_capture},
    {"destroy", WR_SCN_DESTROY, parse_graph},
    {"window", WR_SCN_WINDOW_BEGIN, parse_window},
    {"shutdown", WR_SCN_SHUTDOWN, parse_nothing},
    {"mark", WR_SCN_MARK, parse_mark},
    {"random", WR_SCN_RANDOM, parse_random},
    {"let", WR_SCN_LET, parse_let},
    {"for", WR_SCN_FOR, parse_for},
    {"repeat", WR_SCN_REPEAT, parse_number},
    {"end", WR_SCN_END, parse_nothing},
    {"fork", WR_SCN_FORK, parse_nothing},
    {"exit", WR_SCN_EXIT, parse_nothing},
    {"expect", WR_SCN_EXPECT_NUMBER, wr_scn_expect_parse},
};

bool wr_scn_kind_is_setting(wr_scn_kind kind)
{
    return kind >= WR_SCN_CAPACITY && kind <= WR_SCN_LETS_GO;
}

bool wr_scn_statement_parse(wr_scn_line *line, wr_scn_ops *ops,
                            wr_scn_statement *statement)
{
    wr_scn_text word = wr_scn_line_peek(line);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (wr_scn_text_is(word, statements[i].word)) {
            *statement =
                (wr_scn_statement){.kind = statements[i].kind, .line = line->number};
            line->at += word.bytes;
            return statements[i].parse(line, ops, statement) && wr_scn_line_end(line);
        }
    }
    return wr_scn_line_refuse(line, "unknown statement '%.*s'", WR_SCN_TEXT(word));
}
