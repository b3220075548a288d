/* SPDX-License-Identifier: MIT */
/* From text to statements: lines, the order of settings, and the nesting of blocks. */
#include "program.h"

#include "array.h"
#include "statement.h"

#include <stdlib.h>
#include <string.h>

struct parser {
    wr_scn_program *program;
    wr_scn_line line;
    size_t open[WR_SCN_BLOCK_DEPTH]; /* statements that opened a block not yet closed */
    int depth;
    uint32_t first_action; /* its line; 0: none yet */
    bool is_forked;
};

static const char *block_word(wr_scn_kind kind)
{
    switch (kind) {
    case WR_SCN_FOR:
        return "for";
    case WR_SCN_REPEAT:
        return "repeat";
    default:
        return "fork";
    }
}

static bool open_block(struct parser *parser, wr_scn_kind kind)
{
    if (parser->depth == WR_SCN_BLOCK_DEPTH) {
        return wr_scn_line_refuse(&parser->line, "blocks nest deeper than %d",
                                  WR_SCN_BLOCK_DEPTH);
    }
    if (kind == WR_SCN_FORK && parser->is_forked) {
        return wr_scn_line_refuse(&parser->line, "a fork cannot stand inside a fork");
    }
    parser->is_forked = parser->is_forked || kind == WR_SCN_FORK;
    parser->open[parser->depth++] = parser->program->count - 1;
    return true;
}

static bool close_block(struct parser *parser, wr_scn_kind kind)
{
    const char *word = kind == WR_SCN_EXIT ? "exit" : "end";
    if (parser->depth == 0) {
        return wr_scn_line_refuse(&parser->line, "'%s' without a block to close", word);
    }
    size_t here = parser->program->count - 1;
    size_t opener = parser->open[parser->depth - 1];
    wr_scn_statement *statements = parser->program->statements;
    bool is_fork = statements[opener].kind == WR_SCN_FORK;

    if (is_fork != (kind == WR_SCN_EXIT)) {
        return wr_scn_line_refuse(&parser->line, "'%s' cannot close the '%s' of line %u",
                                  word, block_word(statements[opener].kind),
                                  statements[opener].line);
    }
    parser->is_forked = parser->is_forked && !is_fork;
    parser->depth--;
    statements[opener].partner = here;
    statements[here].partner = opener;
    return true;
}

/* Puts the statement just added where it belongs. */
static bool place(struct parser *parser, const wr_scn_statement *statement)
{
    switch (statement->kind) {
    case WR_SCN_FOR:
    case WR_SCN_REPEAT:
    case WR_SCN_FORK:
        return open_block(parser, statement->kind);
    case WR_SCN_END:
    case WR_SCN_EXIT:
        return close_block(parser, statement->kind);
    default:
        return true;
    }
}

/* Settings come first; `let` may stand among them. */
static bool check_order(struct parser *parser, wr_scn_kind kind)
{
    if (wr_scn_kind_is_setting(kind)) {
        return parser->first_action == 0 ||
               wr_scn_line_refuse(
                   &parser->line,
                   "settings come before the first other statement (line %u)",
                   parser->first_action);
    }
    if (kind != WR_SCN_LET && parser->first_action == 0) {
        parser->first_action = parser->line.number;
    }
    return true;
}

static bool parse_line(struct parser *parser)
{
    wr_scn_program *program = parser->program;
    if (!wr_scn_array_grow((void **)&program->statements, &program->capacity,
                           program->count + 1, sizeof *program->statements)) {
        return wr_scn_line_refuse(&parser->line, "the host has no memory");
    }
    wr_scn_statement statement;
    if (!wr_scn_statement_parse(&parser->line, &program->ops, &statement) ||
        !check_order(parser, statement.kind)) {
        return false;
    }
    program->statements[program->count++] = statement;
    return place(parser, &statement);
}

static bool parse_lines(struct parser *parser, wr_scn_text rest)
{
    while (wr_scn_line_next(&rest, &parser->line)) {
        if (!wr_scn_line_is_done(&parser->line) && !parse_line(parser)) {
            return false;
        }
    }
    if (parser->depth > 0) {
        const wr_scn_statement *opener =
            &parser->program->statements[parser->open[parser->depth - 1]];
        parser->line.number = opener->line;
        return wr_scn_line_refuse(&parser->line, "'%s' has no '%s'",
                                  block_word(opener->kind),
                                  opener->kind == WR_SCN_FORK ? "exit" : "end");
    }
    return true;
}

bool wr_scn_program_parse(wr_scn_program *program, const char *text, size_t bytes,
                          wr_scn_error *error)
{
    *program = (wr_scn_program){0};
    struct parser parser = {.program = program, .line = {.error = error}};
    if (bytes > WR_SCN_MAX_TEXT_BYTES) {
        return wr_scn_line_refuse(&parser.line,
                                  "a scenario has at most %zu bytes, not %zu",
                                  WR_SCN_MAX_TEXT_BYTES, bytes);
    }
    program->text = malloc(bytes + 1);
    if (!program->text) {
        return wr_scn_line_refuse(&parser.line, "the host has no memory");
    }
    if (bytes > 0) {
        memcpy(program->text, text, bytes);
    }
    if (!parse_lines(&parser, (wr_scn_text){program->text, bytes})) {
        wr_scn_program_finish(program);
        return false;
    }
    return true;
}

void wr_scn_program_finish(wr_scn_program *program)
{
    free(program->text);
    free(program->statements);
    free(program->ops.at);
    *program = (wr_scn_program){0};
}
