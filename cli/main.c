/* SPDX-License-Identifier: MIT */
/* The command: finds the subcommand in a table and runs it. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include "json.h"
#include "output.h"
#include "replay/replay.h"
#include "scenario/scenario.h"

#include <weir/base.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

typedef struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} subcommand;

static const subcommand subcommands[] = {
    {"demo", weir_cli_demo, "where the memory of dropped tensors is, step by step"},
    {"devices", weir_cli_devices, "the devices that can be opened here"},
    {"replay", weir_cli_replay, "run recorded allocation traces and measure"},
    {"scenario", weir_cli_scenario, "run scenario files against the sim driver"},
};

enum {
    SUBCOMMAND_COUNT = sizeof subcommands / sizeof *subcommands,
};

static void print_help(FILE *out)
{
    fputs("usage: weir COMMAND [options]\n\n"
          "Device memory in which every byte is accounted for.\n\ncommands:\n",
          out);
    for (int i = 0; i < SUBCOMMAND_COUNT; i++) {
        fprintf(out, "  %-10s  %s\n", subcommands[i].name, subcommands[i].summary);
    }
    fputs("\nweir help COMMAND  says more about one of them\n"
          "weir --version     prints the version\n\n"
          "Exit codes: 0 done, 1 failed, 2 the command line or an input cannot be "
          "understood.\n",
          out);
}

static const subcommand *find_command(const char *name)
{
    for (int i = 0; i < SUBCOMMAND_COUNT; i++) {
        if (strcmp(subcommands[i].name, name) == 0) {
            return &subcommands[i];
        }
    }
    return NULL;
}

static int run_command(const char *name, int argc, char **argv)
{
    const subcommand *found = find_command(name);
    if (found == NULL) {
        return wr_cli_error(WR_EXIT_USAGE, NULL, "unknown command %s; see weir --help",
                            name);
    }
    return found->run(argc, argv);
}

static int help(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stdout);
        return WR_EXIT_OK;
    }
    char *ask[] = {argv[1], "--help", NULL};
    return run_command(argv[1], 2, ask);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return WR_EXIT_USAGE;
    }
    const char *first = argv[1];
    if (strcmp(first, "help") == 0 || strcmp(first, "--help") == 0) {
        return help(argc - 1, argv + 1);
    }
    if (strcmp(first, "--version") == 0) {
        printf("weir %s\n", weir_version());
        return WR_EXIT_OK;
    }
    if (first[0] == '-') {
        return wr_cli_error(WR_EXIT_USAGE, NULL, "unknown option %s; see weir --help",
                            first);
    }
    return run_command(first, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is an error of the write */
    wr_json_init();
    return wr_output_finish(run(argc, argv));
}
