/* SPDX-License-Identifier: MIT */
/* `weir scenario`: small text files that run against the sim driver and say what must be
 * true. The language is described in docs/scenario-language.md. */
#ifndef WEIR_CLI_SCENARIO_SCENARIO_H
#define WEIR_CLI_SCENARIO_SCENARIO_H

#include <stddef.h>

/* argv[0] is the subcommand's name. Returns the exit code: 0 all passed, 1 some failed, 2
 * the arguments or a file are wrong. */
int weir_cli_scenario(int argc, char **argv);

/* Parses without running; 0, or 2 with "LINE: reason" in `error`. The text need not be
 * terminated and may hold anything. */
int weir_scenario_parse_text(const char *text, size_t bytes, char *error,
                             size_t error_bytes);

#endif
