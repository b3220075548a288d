/* SPDX-License-Identifier: MIT */
/* The links for one width of vectors. chain.c includes this once for each, with
 *
 *     CHAIN_BYTES               bytes of a vector
 *     CHAIN_TARGET              what the compiler has to know of the processor
 *     CHAIN_NAME(name)          the name for that width
 *     CHAIN_SQRT(v)
 *     CHAIN_STREAM(to, v)       stores past the caches
 *
 * A block is eight vectors: as many as calls pass in registers. */

#define vec CHAIN_NAME(vec)
#define mask CHAIN_NAME(mask)
#define element CHAIN_NAME(element)
#define ready CHAIN_NAME(ready)
#define function CHAIN_NAME(function)

typedef float vec __attribute__((vector_size(CHAIN_BYTES)));
typedef int32_t mask __attribute__((vector_size(CHAIN_BYTES)));
typedef float element __attribute__((vector_size(CHAIN_BYTES), aligned(4), may_alias));

/* A link whose function has been found. */
typedef struct ready ready;
typedef void (*function)(const ready *link, uint64_t at, vec v0, vec v1, vec v2, vec v3,
                         vec v4, vec v5, vec v6, vec v7);
struct ready {
    function run;
    uintptr_t values; /* of the block at 0 */
    float same;
};

#define LINK(name)                                                                       \
    CHAIN_TARGET static void CHAIN_NAME(name)(const ready *link, uint64_t at, vec v0,    \
                                              vec v1, vec v2, vec v3, vec v4, vec v5,    \
                                              vec v6, vec v7)
#define EIGHT(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define AT(k) (*(element *)(link->values + at + (k)*CHAIN_BYTES))
#define GO_ON link[1].run(link + 1, at, v0, v1, v2, v3, v4, v5, v6, v7);

/* Where a bit is set, that of `one`. */
#define PICK(set, one, other)                                                            \
    ((vec)(((mask)(set) & (mask)(one)) | (~(mask)(set) & (mask)(other))))

/* ---- values: `a` is the left operand, `b` the right one ---- */

#define VALUE(name, value)                                                               \
    CHAIN_TARGET static inline vec CHAIN_NAME(value_of_##name)(vec a, vec b)             \
    {                                                                                    \
        (void)b;                                                                         \
        return value;                                                                    \
    }

VALUE(neg, -a)
VALUE(abs, PICK((mask){0} + 0x7FFFFFFF, a, (vec){0}))
VALUE(sqrt, CHAIN_SQRT(a))
VALUE(rsqrt, 1.0F / CHAIN_SQRT(a))
VALUE(recip, 1.0F / a)
VALUE(relu, PICK(a < 0.0F, (vec){0}, a))
VALUE(add, a + b)
VALUE(sub, a - b)
VALUE(mul, a *b)
VALUE(div, a / b)
VALUE(min, PICK((a < b) | (a != a), a, b))
VALUE(max, PICK((a > b) | (a != a), a, b))

/* ---- links ----
 *
 * Those of two operands come in four forms: the other one is the same for all or there is
 * one for each, and it is the right one or the left one. Minus zero must stay that, so
 * nothing is added to what is spread. */

#define SPREAD(value) ((value) - (vec){0})

#define OF_TWO(name, form, left, right)                                                  \
    LINK(name##_##form)                                                                  \
    {                                                                                    \
        vec same = SPREAD(link->same);                                                   \
        (void)same;                                                                      \
        v0 = CHAIN_NAME(value_of_##name)(left(0), right(0));                             \
        v1 = CHAIN_NAME(value_of_##name)(left(1), right(1));                             \
        v2 = CHAIN_NAME(value_of_##name)(left(2), right(2));                             \
        v3 = CHAIN_NAME(value_of_##name)(left(3), right(3));                             \
        v4 = CHAIN_NAME(value_of_##name)(left(4), right(4));                             \
        v5 = CHAIN_NAME(value_of_##name)(left(5), right(5));                             \
        v6 = CHAIN_NAME(value_of_##name)(left(6), right(6));                             \
        v7 = CHAIN_NAME(value_of_##name)(left(7), right(7));                             \
        GO_ON                                                                            \
    }
#define OWN(k) v##k
#define SAME(k) same
#define UNARY(op, name) OF_TWO(name, alone, OWN, OWN)
#define BINARY(op, name)                                                                 \
    OF_TWO(name, same, OWN, SAME)                                                        \
    OF_TWO(name, each, OWN, AT)                                                          \
    OF_TWO(name, same_left, SAME, OWN)                                                   \
    OF_TWO(name, each_left, AT, OWN)

CHAIN_UNARY(UNARY)
CHAIN_BINARY(BINARY)
#undef UNARY
#undef BINARY

LINK(store)
{
#define STORE(k) AT(k) = (element)v##k;
    EIGHT(STORE)
#undef STORE
}

LINK(stream)
{
#define STREAM(k) CHAIN_STREAM(link->values + at + (k)*CHAIN_BYTES, v##k);
    EIGHT(STREAM)
#undef STREAM
}

/* The first operand, and all that follows. */
CHAIN_TARGET static void CHAIN_NAME(run_block)(const ready *link, uint64_t at)
{
    link[1].run(link + 1, at, (vec)AT(0), (vec)AT(1), (vec)AT(2), (vec)AT(3), (vec)AT(4),
                (vec)AT(5), (vec)AT(6), (vec)AT(7));
}

/* ---- chains ---- */

static function CHAIN_NAME(find)(const wr_link *link)
{
    uint32_t form = (link->form != WR_LINK_FORM_SAME) + 2u * link->is_left;
    switch (link->op) {
#define UNARY(op, name)                                                                  \
    case WEIR_OP_##op:                                                                   \
        return CHAIN_NAME(name##_alone);
#define BINARY(op, name)                                                                 \
    case WEIR_OP_##op: {                                                                 \
        static const function forms[4] = {CHAIN_NAME(name##_same),                       \
                                          CHAIN_NAME(name##_each),                       \
                                          CHAIN_NAME(name##_same_left),                  \
                                          CHAIN_NAME(name##_each_left)};                 \
        return forms[form];                                                              \
    }
        CHAIN_UNARY(UNARY)
        CHAIN_BINARY(BINARY)
#undef UNARY
#undef BINARY
    default:
        return NULL;
    }
}

/* The last elements, which fill no block: by way of copies that do. */
static void CHAIN_NAME(run_rest)(const ready *links, uint32_t count, uint64_t at,
                                 uint64_t bytes)
{
    ready own[2 + WEIR_EXPRESSION_STEPS];
    _Alignas(64) char copies[2 + WEIR_EXPRESSION_STEPS][8 * CHAIN_BYTES];
    for (uint32_t i = 0; i < count; i++) {
        own[i] = links[i];
        if (links[i].values != 0) {
            own[i].values = (uintptr_t)copies[i];
            memset(copies[i], 0, sizeof copies[i]);
        }
        if (links[i].values != 0 && i + 1 < count) {
            memcpy(copies[i], (const void *)(links[i].values + at), bytes);
        }
    }
    own[count - 1].run = CHAIN_NAME(store);
    CHAIN_NAME(run_block)(own, 0);
    memcpy((void *)(links[count - 1].values + at), copies[count - 1], bytes);
}

static void CHAIN_NAME(run)(const wr_chain *chain, uint64_t count)
{
    enum { BLOCK = 8 * CHAIN_BYTES };
    ready links[2 + WEIR_EXPRESSION_STEPS];
    uint64_t bytes = count * sizeof(float);
    uint64_t blocks = bytes / BLOCK;
    uint64_t row = chain->row > 0 ? chain->row * sizeof(float) : bytes;
    uint64_t last = chain->link_count + 1;
    bool streams = chain->streams && (uintptr_t)chain->to % CHAIN_BYTES == 0;
    links[0] = (ready){.values = (uintptr_t)chain->from};
    for (uint32_t i = 0; i < chain->link_count; i++) {
        const wr_link *link = &chain->links[i];
        links[1 + i] = (ready){.run = CHAIN_NAME(find)(link)};
        if (link->form != WR_LINK_FORM_SAME) {
            links[1 + i].values = (uintptr_t)link->values;
        } else if (link->values != NULL) {
            memcpy(&links[1 + i].same, link->values, sizeof(float));
        }
    }
    links[last] = (ready){.run = streams ? CHAIN_NAME(stream) : CHAIN_NAME(store),
                          .values = (uintptr_t)chain->to};
    for (uint64_t at = 0; at < blocks * BLOCK;) {
        uint64_t left = blocks * BLOCK - at;
        uint64_t end = at + (row < left ? row : left);
        for (; at < end; at += BLOCK) {
            CHAIN_NAME(run_block)(links, at);
        }
        for (uint32_t i = 0; at % row == 0 && i < chain->link_count; i++) {
            links[1 + i].values -= chain->links[i].form == WR_LINK_FORM_ROW ? row : 0;
        }
    }
    if (bytes % BLOCK != 0) {
        CHAIN_NAME(run_rest)(links, (uint32_t)last + 1, blocks * BLOCK, bytes % BLOCK);
    }
}

#undef vec
#undef mask
#undef element
#undef ready
#undef function
#undef LINK
#undef EIGHT
#undef AT
#undef GO_ON
#undef PICK
#undef VALUE
#undef SPREAD
#undef OF_TWO
#undef OWN
#undef SAME
#undef CHAIN_BYTES
#undef CHAIN_TARGET
#undef CHAIN_NAME
#undef CHAIN_SQRT
#undef CHAIN_STREAM
