/* SPDX-License-Identifier: MIT */
/* The host driver's capacity where control groups bound it, in trees of files made up
 * here. */
#define _GNU_SOURCE
#include "contract.h"

#include "driver/host/system.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a made-up mount point ---- */

static char root[] = "/tmp/weir-group-XXXXXX";

static int remove_one(const char *path, const struct stat *status, int kind,
                      struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int make_root(void **state)
{
    (void)state;
    memcpy(root + sizeof root - 7, "XXXXXX", 6);
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file below the root; its folders come into being. */
static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static wr_group find_group(const char *listing)
{
    wr_group group;
    wr_group_find(root, listing, &group);
    return group;
}

static void assert_path(const wr_group *group, const char *below)
{
    assert_int_equal(strncmp(group->path, root, strlen(root)), 0);
    assert_string_equal(group->path + strlen(root), below);
}

/* ---- version 2 ---- */

static void version_2__takes_the_tightest_limit_on_the_way_up(void **state)
{
    (void)state;
    put("memory.stat", "anon 9\n");
    put("a/memory.max", "1000000\n");
    put("a/memory.stat", "file 5\nanon_thp 3\nanon 777\nshmem 1\n");
    put("a/b/memory.max", "max\n");
    put("a/b/c/memory.max", "2000000\n");
    wr_group group = find_group("0::/a/b/c\n");
    uint64_t anonymous = 0;
    assert_true(group.is_v2);
    assert_int_equal(group.limit_bytes, 1000000);
    assert_path(&group, "/a");
    assert_true(wr_group_anonymous(&group, &anonymous));
    assert_int_equal(anonymous, 777);
}

static void version_2__without_a_limit_is_unlimited(void **state)
{
    (void)state;
    put("a/memory.max", "max\n");
    assert_int_equal(find_group("0::/a\n").limit_bytes, UINT64_MAX);
    assert_int_equal(find_group("0::/\n").limit_bytes, UINT64_MAX);
    assert_int_equal(find_group("0::/elsewhere").limit_bytes, UINT64_MAX);
}

static void in_a_container__the_root_carries_the_limit(void **state)
{
    (void)state;
    put("memory.max", "5000\n");
    wr_group group = find_group("0::/../host/path/that/is/not/mounted\n");
    assert_int_equal(group.limit_bytes, 5000);
    assert_path(&group, "");
}

/* ---- version 1 ---- */

static void version_1__is_found_among_other_controllers(void **state)
{
    (void)state;
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/job/memory.limit_in_bytes", "4096000\n");
    put("memory/job/memory.stat", "rss 1\ntotal_rss_huge 2\ntotal_rss 333\n");
    put("memory.max", "1\n");
    wr_group group =
        find_group("12:pids:/x\n5:cpu,memory,io:/job\n4:memory_like:/y\n0::/\n");
    uint64_t anonymous = 0;
    assert_false(group.is_v2);
    assert_int_equal(group.limit_bytes, 4096000);
    assert_path(&group, "/memory/job");
    assert_true(wr_group_anonymous(&group, &anonymous));
    assert_int_equal(anonymous, 333);
}

/* ---- nothing to find ---- */

static void a_listing_that_makes_no_sense__is_no_limit(void **state)
{
    (void)state;
    static char long_line[8000];
    const char *const listings[] = {"",       "\n\n",       "0:",     "1:memory",
                                    "memory", "7:cpu:/a\n", long_line};
    put("memory.max", "1\n");
    put("memory/memory.limit_in_bytes", "1\n");
    memset(long_line, 'x', sizeof long_line - 1);
    memcpy(long_line, "0::/", 4);
    for (size_t i = 0; i < sizeof listings / sizeof listings[0]; i++) {
        uint64_t anonymous = 77;
        wr_group group = find_group(listings[i]);
        assert_int_equal(group.limit_bytes, UINT64_MAX);
        assert_false(wr_group_anonymous(&group, &anonymous));
        assert_int_equal(anonymous, 77);
    }
}

/* ---- the system's own figures ---- */

static void a_number__is_found_at_the_start_of_a_line_only(void **state)
{
    (void)state;
    uint64_t number = 77;
    const char *text =
        "RssAnonymous: 5 kB\n  RssAnon: 6 kB\nRssAnon:\t  1234 kB\nRssFile: 8 kB\n";
    assert_true(wr_system_number(text, "RssAnon:", &number));
    assert_int_equal(number, 1234);
    assert_false(wr_system_number(text, "VmSwap:", &number));
    assert_false(wr_system_number("", "RssAnon:", &number));
    assert_false(wr_system_number("RssAnon: none\n", "RssAnon:", &number));
}

static void a_file_that_is_not_there__cannot_be_read(void **state)
{
    (void)state;
    char text[8];
    assert_false(wr_system_read("/no/such/file", text, sizeof text));
    assert_false(wr_system_read("/dev/null", text, sizeof text));
    assert_true(wr_system_read("/proc/self/status", text, sizeof text));
    assert_int_equal(strlen(text), sizeof text - 1);
}

static void the_capacity__is_no_more_than_the_physical_memory(void **state)
{
    (void)state;
    wr_system system;
    wr_system_init(&system);
    uint64_t physical =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_true(system.capacity_bytes > 0 && system.capacity_bytes <= physical);
    assert_int_equal(system.is_grouped, system.capacity_bytes < physical);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(version_2__takes_the_tightest_limit_on_the_way_up),
        TEST(version_2__without_a_limit_is_unlimited),
        TEST(in_a_container__the_root_carries_the_limit),
        TEST(version_1__is_found_among_other_controllers),
        TEST(a_listing_that_makes_no_sense__is_no_limit),
        TEST(a_number__is_found_at_the_start_of_a_line_only),
        TEST(a_file_that_is_not_there__cannot_be_read),
        TEST(the_capacity__is_no_more_than_the_physical_memory),
    };
    return cmocka_run_group_tests_name("driver host group", tests, NULL, NULL);
}
