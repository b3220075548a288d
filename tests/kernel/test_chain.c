/* SPDX-License-Identifier: MIT */
/* Chains beside the loops that do the same one after the other. */
#include "kernel/chain.h"
#include "kernel/operation.h"

#include "kernel/dtype.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 3 * 64 + 5 };

static float one[MOST + 1];
static float other[MOST + 1];

/* All kinds of numbers against each other. */
static void fill_inputs(void)
{
    static const float numbers[11] = {0.0F,     -0.0F,     1.5F,      -2.25F,
                                      INFINITY, -INFINITY, 0x1p-140F, NAN,
                                      1e30F,    -3.4e38F,  7.0F};
    for (int i = 0; i <= MOST; i++) {
        one[i] = numbers[i % 11];
        other[i] = numbers[i / 11 % 11];
    }
}

static void expect_same(const float *got, const float *expected, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (memcmp(&got[i], &expected[i], sizeof got[i]) != 0 &&
            !(isnan(got[i]) && isnan(expected[i]))) {
            fail_msg("element %d of %d: %a, not %a", (int)i, (int)count, (double)got[i],
                     (double)expected[i]);
        }
    }
}

/* What the loops make of a link; `values` has what came before, and gets the result. */
static void run_loop(const wr_link *link, float *values, uint64_t count)
{
    static float spread[MOST];
    const float *with = link->values;
    for (uint64_t i = 0; with != NULL && link->form == WR_LINK_FORM_SAME && i < count;
         i++) {
        spread[i] = *with;
    }
    with = link->form == WR_LINK_FORM_SAME ? spread : with;
    const wr_operands operands = {
        .values = {link->is_left ? with : values, link->is_left ? values : with}};
    wr_operation_run(link->op, WEIR_DTYPE_F32, values, &operands, count);
}

static void check_chain(const wr_chain *chain, uint64_t count)
{
    static float got[MOST], expected[MOST];
    wr_chain copy = *chain;
    memcpy(expected, chain->from, count * sizeof(float));
    for (uint32_t i = 0; i < chain->link_count; i++) {
        run_loop(&chain->links[i], expected, count);
    }
    for (int streams = 0; streams < 2; streams++) {
        memset(got, 0, sizeof got);
        copy.to = got;
        copy.streams = streams == 1;
        wr_chain_run(&copy, count);
        wr_chain_settle();
        expect_same(got, expected, count);
        assert_true(count == MOST || got[count] == 0);
    }
}

static void every_link__is_its_loop_to_the_bit(void **state)
{
    (void)state;
    fill_inputs();
    int taken = 0;
    for (int op = 0; op < 256; op++) {
        bool has_two = wr_operation_arity((weir_op)op) == 2;
        if (!wr_chain_takes((weir_op)op, WEIR_DTYPE_F32)) {
            continue;
        }
        taken++;
        for (uint8_t form = 0; form < (has_two ? 4 : 1); form++) {
            for (uint64_t count = 1; count <= MOST; count += count < 3 ? 1 : 17) {
                check_chain(
                    &(wr_chain){
                        .from = one,
                        .link_count = 1,
                        .links = {{.op = (uint8_t)op,
                                   .form = form % 2,
                                   .is_left = form > 1,
                                   .values = has_two ? &other[13] - form % 2 : NULL}}},
                    count < MOST - 13 ? count : MOST - 13);
            }
        }
    }
    assert_true(taken >= 12);
}

static void a_chain__is_its_links_one_after_the_other(void **state)
{
    (void)state;
    fill_inputs();
    float factor = 0.3F;
    wr_chain chain = {
        .from = one + 1, /* on no boundary */
        .link_count = 6,
        .links = {{.op = WEIR_OP_MUL, .form = WR_LINK_FORM_SAME, .values = &factor},
                  {.op = WEIR_OP_ADD, .form = WR_LINK_FORM_EACH, .values = other + 1},
                  {.op = WEIR_OP_RELU},
                  {.op = WEIR_OP_DIV,
                   .form = WR_LINK_FORM_SAME,
                   .is_left = true,
                   .values = &factor},
                  {.op = WEIR_OP_SUB,
                   .form = WR_LINK_FORM_EACH,
                   .is_left = true,
                   .values = one},
                  {.op = WEIR_OP_MAX, .form = WR_LINK_FORM_EACH, .values = other}}};
    check_chain(&chain, MOST);
    chain.link_count = 0;
    check_chain(&chain, MOST);
}

static void a_row__comes_again_for_every_row(void **state)
{
    (void)state;
    float spread[MOST], got[MOST], expected[MOST];
    fill_inputs();
    for (int i = 0; i < MOST; i++) {
        spread[i] = other[7 + i % (int)WR_CHAIN_ROW];
    }
    wr_chain chain = {
        .from = one,
        .to = got,
        .row = WR_CHAIN_ROW,
        .link_count = 2,
        .links = {{.op = WEIR_OP_SUB,
                   .form = WR_LINK_FORM_ROW,
                   .is_left = true,
                   .values = other + 7},
                  {.op = WEIR_OP_ADD, .form = WR_LINK_FORM_EACH, .values = one}}};
    for (int i = 0; i < MOST; i++) {
        expected[i] = (spread[i] - one[i]) + one[i];
    }
    for (uint64_t count = WR_CHAIN_ROW; count <= MOST; count += 43) {
        wr_chain_run(&chain, count);
        expect_same(got, expected, count);
    }
    wr_chain_run(&chain, MOST);
    expect_same(got, expected, MOST);
}

static void a_chain__may_end_where_it_reads(void **state)
{
    (void)state;
    float values[MOST], expected[MOST];
    fill_inputs();
    memcpy(values, one, sizeof values);
    memcpy(expected, one, sizeof expected);
    wr_chain chain = {
        .from = other,
        .to = values,
        .link_count = 2,
        .links = {{.op = WEIR_OP_NEG},
                  {.op = WEIR_OP_MUL, .form = WR_LINK_FORM_EACH, .values = values}}};
    for (int i = 0; i < MOST; i++) {
        expected[i] = -other[i] * one[i];
    }
    wr_chain_run(&chain, MOST);
    expect_same(values, expected, MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_link__is_its_loop_to_the_bit),
        cmocka_unit_test(a_chain__is_its_links_one_after_the_other),
        cmocka_unit_test(a_row__comes_again_for_every_row),
        cmocka_unit_test(a_chain__may_end_where_it_reads),
    };
    return cmocka_run_group_tests_name("kernel, chain", tests, NULL, NULL);
}
