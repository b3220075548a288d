/* SPDX-License-Identifier: MIT */
/* A plug-in that carries the library cannot be unloaded under its thread. */
#define _GNU_SOURCE
#include "support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int (*plugin_function)(void);

static plugin_function find(void *plugin, const char *name)
{
    void *symbol = dlsym(plugin, name);
    plugin_function function;
    assert_non_null(symbol);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static void a_plugin_is_unloaded_and_its_reclaimer_goes_on(void **state)
{
    (void)state;
    const char *folder = getenv("WEIR_BUILD_DIR");
    char path[4096];
    if (folder == NULL) {
        skip();
    }
    snprintf(path, sizeof path, "%s/tests/plugin.so", folder);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
        fail_msg("%s", dlerror());
    }
    plugin_function start = find(plugin, "plugin_start"),
                    stop = find(plugin, "plugin_stop");
    assert_int_equal(start(), 0);
    assert_int_equal(dlclose(plugin), 0);
    /* Many periods: the thread runs code of the plug-in all the while. */
    nanosleep(&(struct timespec){.tv_sec = 0, .tv_nsec = 300 * 1000000}, NULL);
    void *again = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(again);
    assert_int_equal(stop(), 0);
    dlclose(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugin_is_unloaded_and_its_reclaimer_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
