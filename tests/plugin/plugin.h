/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PLUGIN_PLUGIN_H
#define TESTS_PLUGIN_PLUGIN_H

/* Opens a host device and starts its reclaimer; 0 if all went well. */
__attribute__((visibility("default"))) int plugin_start(void);
/* Expects that the reclaimer has given everything back, and closes. */
__attribute__((visibility("default"))) int plugin_stop(void);

#endif
