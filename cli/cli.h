/* SPDX-License-Identifier: MIT */
/* What every part of the command shares: exit codes and one-line errors. The command uses
 * the public headers of Weir only. */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

typedef enum wr_exit {
    WR_EXIT_OK = 0,
    WR_EXIT_FAILED = 1, /* the thing asked failed */
    WR_EXIT_USAGE = 2,  /* the command line or an input cannot be understood */
} wr_exit;

/* Prints "weir COMMAND: TEXT" on standard error ("weir: TEXT" if `command` is NULL) and
 * returns `code`. */
int wr_cli_error(wr_exit code, const char *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The commands. argv[0] is the command's own name, and argv[argc] is NULL. */
int weir_cli_demo(int argc, char **argv);
int weir_cli_devices(int argc, char **argv);

#endif
