// SPDX-License-Identifier: MIT
// CUDA C for the host's C++ compiler: what stands before the text of a kernel, so that the fake
// NVRTC can have it compiled and the fake libcuda can run it. Blocks run one after another, so
// that what a block shares is one static variable.
#pragma once

extern "C" {
float expf(float);
float logf(float);
float sqrtf(float);
float tanhf(float);
float erff(float);
float sinf(float);
float cosf(float);
float fabsf(float);
float fmaxf(float, float);
float fminf(float, float);
float powf(float, float);
float nextafterf(float, float);
void *memcpy(void *, const void *, unsigned long);
}

struct fake_index {
    unsigned x, y, z;
};

// As in kernels.c.
struct fake_thread {
    fake_index thread, block, threads, blocks;
    void (*sync)(void *);
    void *context;
};

// One launch runs at a time.
static const fake_thread *fake_self;

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static
#define threadIdx (fake_self->thread)
#define blockIdx (fake_self->block)
#define blockDim (fake_self->threads)
#define gridDim (fake_self->blocks)

// Others have had their turns when it returns.
static inline void __syncthreads()
{
    const fake_thread *me = fake_self;
    me->sync(me->context);
    fake_self = me;
}

// All threads of the block call it, so that the block can stand for the warp.
template <class V> static V __shfl_xor_sync(unsigned, V value, unsigned lanes)
{
    static V all[1024];
    all[threadIdx.x] = value;
    __syncthreads();
    V other = all[threadIdx.x ^ lanes];
    __syncthreads();
    return other;
}

static inline int __float_as_int(float from)
{
    int to;
    memcpy(&to, &from, sizeof to);
    return to;
}

static inline float __int_as_float(int from)
{
    float to;
    memcpy(&to, &from, sizeof to);
    return to;
}

static inline int __clz(int word)
{
    return word == 0 ? 32 : __builtin_clz((unsigned)word);
}

// ---- calling a function with CUDA's array of parameters ----

template <class... A> struct fake_types {
};
template <int... I> struct fake_numbers {
};
template <int N, int... I> struct fake_count : fake_count<N - 1, N - 1, I...> {
};
template <int... I> struct fake_count<0, I...> {
    typedef fake_numbers<I...> type;
};
template <class T> struct fake_plain {
    typedef T type;
};
template <class T> struct fake_plain<const T> {
    typedef T type;
};

template <class... A, int... I>
static void fake_pass(void (*function)(A...), void **parameters, fake_numbers<I...>)
{
    function(*(typename fake_plain<A>::type *)parameters[I]...);
}

template <class... A>
static void fake_call(void (*function)(A...), const fake_thread *self, void **parameters)
{
    fake_self = self;
    fake_pass(function, parameters, typename fake_count<sizeof...(A)>::type());
}

#define FAKE_ENTRY(name)                                                                 \
    extern "C" void fake_call_##name(const fake_thread *self, void **parameters)         \
    {                                                                                    \
        fake_call(name, self, parameters);                                               \
    }

// ---- what the GPU has instructions for; stands behind the text ----

#define FAKE_HALVES                                                                      \
    static float value(f16 e)                                                            \
    {                                                                                    \
        unsigned sign = (unsigned)(e.bits & 0x8000) << 16, size = e.bits & 0x7FFF;       \
        float small = __int_as_float((int)(size << 13)) * 0x1p112F;                      \
        unsigned bits = size >= 0x7C00 ? 0x7F800000 | (size & 0x3FF) << 13               \
                                       : (unsigned)__float_as_int(small);                \
        return __int_as_float((int)(sign | bits));                                       \
    }                                                                                    \
    static void set(f16 &e, float v)                                                     \
    {                                                                                    \
        unsigned bits = (unsigned)__float_as_int(v), sign = bits >> 16 & 0x8000;         \
        unsigned size = bits & 0x7FFFFFFF;                                               \
        if (size >= 0x47800000) {                                                        \
            size = size > 0x7F800000 ? 0x7E00 : 0x7C00;                                  \
        } else if (size < 0x38800000) {                                                  \
            float moved = __int_as_float((int)size) + 0.5F;                              \
            size = (unsigned)__float_as_int(moved) - 0x3F000000;                         \
        } else {                                                                         \
            size = (size + 0xFFF + (size >> 13 & 1) - 0x38000000) >> 13;                 \
        }                                                                                \
        e.bits = (unsigned short)(sign | size);                                          \
    }
