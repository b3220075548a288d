/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_REPLAY_REPLAY_H
#define WEIR_CLI_REPLAY_REPLAY_H

/* `weir replay TRACE`: a recorded trace against any device and preset. Returns the exit
 * code. */
int weir_cli_replay(int argc, char **argv);

#endif
