/* SPDX-License-Identifier: MIT */
/* Reading one statement off its line. */
#ifndef WEIR_CLI_SCENARIO_STATEMENT_H
#define WEIR_CLI_SCENARIO_STATEMENT_H

#include "program.h"

/* Reads the statement on a line that is not empty, up to its end. */
bool wr_scn_statement_parse(wr_scn_line *line, wr_scn_ops *ops,
                            wr_scn_statement *statement);

/* Reads what follows the word `expect` (expect_parse.c). */
bool wr_scn_expect_parse(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement);

#endif
