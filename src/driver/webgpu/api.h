/* SPDX-License-Identifier: MIT */
/* The part of the standard webgpu.h that this driver calls, declared here so that
 * building needs no header of anybody's. The library is loaded when a device is opened
 * and never unloaded: it has threads of its own.
 *
 * Layouts, numbers and signatures are those of webgpu.h 1.0 (LP64), which Dawn has had
 * since its June 2025 and wgpu-native since its version 24. One struct changed in between
 * (WGPUInstanceDescriptor), which is why instances are made without one and nothing here
 * waits inside the library: events are asked for, by wgpuInstanceProcessEvents. */
#ifndef WR_DRIVER_WEBGPU_API_H
#define WR_DRIVER_WEBGPU_API_H

#include <weir/base.h>

typedef struct wr_wg_instance_opaque *wr_wg_instance;
typedef struct wr_wg_adapter_opaque *wr_wg_adapter;
typedef struct wr_wg_device_opaque *wr_wg_device;
typedef struct wr_wg_queue_opaque *wr_wg_queue;
typedef struct wr_wg_buffer_opaque *wr_wg_buffer;
typedef struct wr_wg_encoder_opaque *wr_wg_encoder;
typedef struct wr_wg_commands_opaque *wr_wg_commands;
typedef struct wr_wg_pass_opaque *wr_wg_pass;
typedef struct wr_wg_shader_opaque *wr_wg_shader;
typedef struct wr_wg_pipeline_opaque *wr_wg_pipeline;
typedef struct wr_wg_pipeline_layout_opaque *wr_wg_pipeline_layout;
typedef struct wr_wg_group_opaque *wr_wg_group;
typedef struct wr_wg_group_layout_opaque *wr_wg_group_layout;

typedef uint32_t wr_wg_bool;

typedef enum wr_wg_number {
    WR_WG_SUCCESS = 1, /* of every kind of status */
    WR_WG_ON_PROCESS_EVENTS = 2,
    WR_WG_SPONTANEOUS = 3,
    WR_WG_ERROR_NONE = 1,
    WR_WG_ERROR_VALIDATION = 2,
    WR_WG_ERROR_OUT_OF_MEMORY = 3,
    WR_WG_FILTER_VALIDATION = 1,
    WR_WG_FILTER_OUT_OF_MEMORY = 2,
    WR_WG_FILTER_INTERNAL = 3,
    WR_WG_BACKEND_NULL = 1,
    WR_WG_BACKEND_D3D12 = 4,
    WR_WG_BACKEND_METAL = 5,
    WR_WG_BACKEND_VULKAN = 6,
    WR_WG_ADAPTER_CPU = 3,
    WR_WG_POWER_LOW = 1,
    WR_WG_POWER_HIGH = 2,
    WR_WG_FEATURES_CORE = 2,
    WR_WG_BINDING_STORAGE = 3, /* read and write */
    WR_WG_CHAIN_WGSL = 2,
    WR_WG_MAP_READ = 1,
    WR_WG_MAP_WRITE = 2,
    WR_WG_CHAIN_MEMORY_HEAPS = 0x50013, /* Dawn's own */
    WR_WG_HEAP_DEVICE_LOCAL = 1,
} wr_wg_number;

/* WGPUBufferUsage, 64 bits wide */
#define WR_WG_USE_MAP_READ UINT64_C(1)
#define WR_WG_USE_MAP_WRITE UINT64_C(2)
#define WR_WG_USE_COPY_SRC UINT64_C(4)
#define WR_WG_USE_COPY_DST UINT64_C(8)
#define WR_WG_USE_STORAGE UINT64_C(0x80)

/* WGPUStringView; a length of SIZE_MAX: up to the 0. */
typedef struct wr_wg_text {
    const char *data;
    size_t length;
} wr_wg_text;

/* WGPUChainedStruct */
typedef struct wr_wg_chain {
    struct wr_wg_chain *next;
    uint32_t kind;
} wr_wg_chain;

/* WGPUFuture */
typedef struct wr_wg_future {
    uint64_t id;
} wr_wg_future;

typedef void (*wr_wg_on_adapter)(uint32_t status, wr_wg_adapter adapter, wr_wg_text text,
                                 void *context, void *more);
typedef void (*wr_wg_on_device)(uint32_t status, wr_wg_device device, wr_wg_text text,
                                void *context, void *more);
/* A buffer mapped, or work done. */
typedef void (*wr_wg_on_done)(uint32_t status, wr_wg_text text, void *context,
                              void *more);
typedef void (*wr_wg_on_scope)(uint32_t status, uint32_t type, wr_wg_text text,
                               void *context, void *more);
/* A device lost (`what` is the reason), or an error outside scopes (its type). */
typedef void (*wr_wg_on_trouble)(const wr_wg_device *device, uint32_t what,
                                 wr_wg_text text, void *context, void *more);

/* The WGPU...CallbackInfo structs, passed by value. */
#define WR_WG_CALLBACK(name, function)                                                   \
    typedef struct name {                                                                \
        wr_wg_chain *next;                                                               \
        uint32_t mode;                                                                   \
        function callback;                                                               \
        void *context;                                                                   \
        void *more;                                                                      \
    } name;
WR_WG_CALLBACK(wr_wg_adapter_callback, wr_wg_on_adapter)
WR_WG_CALLBACK(wr_wg_device_callback, wr_wg_on_device)
WR_WG_CALLBACK(wr_wg_done_callback, wr_wg_on_done)
WR_WG_CALLBACK(wr_wg_scope_callback, wr_wg_on_scope)
WR_WG_CALLBACK(wr_wg_lost_callback, wr_wg_on_trouble)
#undef WR_WG_CALLBACK

/* WGPUUncapturedErrorCallbackInfo: the one without a mode. */
typedef struct wr_wg_error_callback {
    wr_wg_chain *next;
    wr_wg_on_trouble callback;
    void *context;
    void *more;
} wr_wg_error_callback;

/* WGPURequestAdapterOptions */
typedef struct wr_wg_adapter_options {
    wr_wg_chain *next;
    uint32_t feature_level;
    uint32_t power;
    wr_wg_bool force_fallback;
    uint32_t backend; /* 0: any */
    void *surface;
} wr_wg_adapter_options;

/* WGPUAdapterInfo */
typedef struct wr_wg_adapter_info {
    wr_wg_chain *next;
    wr_wg_text vendor;
    wr_wg_text architecture;
    wr_wg_text device;
    wr_wg_text description;
    uint32_t backend;
    uint32_t type;
    uint32_t vendor_id; /* of PCI */
    uint32_t device_id;
    uint32_t subgroup_min;
    uint32_t subgroup_max;
} wr_wg_adapter_info;

/* WGPUMemoryHeapInfo and WGPUAdapterPropertiesMemoryHeaps: a chain of the info's. */
typedef struct wr_wg_heap {
    uint64_t properties;
    uint64_t bytes;
} wr_wg_heap;

typedef struct wr_wg_heaps {
    wr_wg_chain chain;
    size_t count;
    const wr_wg_heap *heaps;
} wr_wg_heaps;

/* WGPULimits */
typedef struct wr_wg_limits {
    wr_wg_chain *next;
    uint32_t textures[4];
    uint32_t bind_groups;
    uint32_t bind_groups_and_vertex_buffers;
    uint32_t bindings_per_group;
    uint32_t dynamic_uniform_buffers;
    uint32_t dynamic_storage_buffers;
    uint32_t sampled_textures;
    uint32_t samplers;
    uint32_t storage_buffers; /* per shader stage */
    uint32_t storage_textures;
    uint32_t uniform_buffers;
    uint64_t uniform_binding_bytes;
    uint64_t storage_binding_bytes;
    uint32_t uniform_alignment_bytes;
    uint32_t storage_alignment_bytes;
    uint32_t vertex_buffers;
    uint64_t buffer_bytes;
    uint32_t vertex[5];
    uint32_t workgroup_storage_bytes;
    uint32_t workgroup_invocations;
    uint32_t workgroup_size[3];
    uint32_t workgroups_per_dimension;
    uint32_t immediate_bytes;
} wr_wg_limits;

/* WGPUQueueDescriptor, and of encoders and command buffers. */
typedef struct wr_wg_label {
    wr_wg_chain *next;
    wr_wg_text label;
} wr_wg_label;

/* WGPUDeviceDescriptor */
typedef struct wr_wg_device_desc {
    wr_wg_chain *next;
    wr_wg_text label;
    size_t feature_count;
    const uint32_t *features;
    const wr_wg_limits *limits;
    wr_wg_label queue;
    wr_wg_lost_callback lost;
    wr_wg_error_callback error;
} wr_wg_device_desc;

/* WGPUBufferDescriptor */
typedef struct wr_wg_buffer_desc {
    wr_wg_chain *next;
    wr_wg_text label;
    uint64_t usage;
    uint64_t bytes;
    wr_wg_bool is_mapped; /* at creation */
} wr_wg_buffer_desc;

/* WGPUShaderSourceWGSL: a chain of a shader module's descriptor, which is a label. */
typedef struct wr_wg_wgsl {
    wr_wg_chain chain;
    wr_wg_text code;
} wr_wg_wgsl;

/* WGPUConstantEntry */
typedef struct wr_wg_constant {
    wr_wg_chain *next;
    wr_wg_text key;
    double value;
} wr_wg_constant;

/* WGPUComputePipelineDescriptor, with its WGPUComputeState. */
typedef struct wr_wg_pipeline_desc {
    wr_wg_chain *next;
    wr_wg_text label;
    wr_wg_pipeline_layout layout;
    struct {
        wr_wg_chain *next;
        wr_wg_shader shader;
        wr_wg_text entry;
        size_t constant_count;
        const wr_wg_constant *constants;
    } compute;
} wr_wg_pipeline_desc;

#define WR_WG_STAGE_COMPUTE UINT64_C(4)

/* WGPUBindGroupLayoutEntry: what is no buffer stays zero. */
typedef struct wr_wg_layout_entry {
    wr_wg_chain *next;
    uint32_t binding;
    uint64_t visibility;
    uint32_t array_size;
    struct {
        wr_wg_chain *next;
        uint32_t type;
        wr_wg_bool has_dynamic_offset;
        uint64_t min_bytes;
    } buffer;
    struct {
        wr_wg_chain *next;
        uint32_t type;
    } sampler;
    struct {
        wr_wg_chain *next;
        uint32_t numbers[3];
    } texture;
    struct {
        wr_wg_chain *next;
        uint32_t numbers[3];
    } storage_texture;
} wr_wg_layout_entry;

/* WGPUBindGroupLayoutDescriptor */
typedef struct wr_wg_group_layout_desc {
    wr_wg_chain *next;
    wr_wg_text label;
    size_t count;
    const wr_wg_layout_entry *entries;
} wr_wg_group_layout_desc;

/* WGPUPipelineLayoutDescriptor */
typedef struct wr_wg_pipeline_layout_desc {
    wr_wg_chain *next;
    wr_wg_text label;
    size_t count;
    const wr_wg_group_layout *groups;
    uint32_t immediate_bytes;
} wr_wg_pipeline_layout_desc;

/* WGPUBindGroupEntry */
typedef struct wr_wg_group_entry {
    wr_wg_chain *next;
    uint32_t binding;
    wr_wg_buffer buffer;
    uint64_t offset;
    uint64_t bytes;
    void *sampler;
    void *texture;
} wr_wg_group_entry;

/* WGPUBindGroupDescriptor */
typedef struct wr_wg_group_desc {
    wr_wg_chain *next;
    wr_wg_text label;
    wr_wg_group_layout layout;
    size_t count;
    const wr_wg_group_entry *entries;
} wr_wg_group_desc;

_Static_assert(sizeof(wr_wg_wgsl) == 32, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_constant) == 32, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_pipeline_desc) == 80, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_layout_entry) == 120, "as in webgpu.h");
_Static_assert(offsetof(wr_wg_layout_entry, buffer) == 32, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_group_layout_desc) == 40, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_pipeline_layout_desc) == 48, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_group_entry) == 56, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_group_desc) == 48, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_text) == 16, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_chain) == 16, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_adapter_callback) == 40, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_error_callback) == 32, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_adapter_options) == 32, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_adapter_info) == 96, "as in webgpu.h");
_Static_assert(offsetof(wr_wg_adapter_info, backend) == 72, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_limits) == 152, "as in webgpu.h");
_Static_assert(offsetof(wr_wg_limits, storage_buffers) == 52, "as in webgpu.h");
_Static_assert(offsetof(wr_wg_limits, storage_binding_bytes) == 72, "as in webgpu.h");
_Static_assert(offsetof(wr_wg_limits, buffer_bytes) == 96, "as in webgpu.h");
_Static_assert(offsetof(wr_wg_limits, workgroup_storage_bytes) == 124, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_device_desc) == 144, "as in webgpu.h");
_Static_assert(offsetof(wr_wg_device_desc, limits) == 40, "as in webgpu.h");
_Static_assert(offsetof(wr_wg_device_desc, error) == 112, "as in webgpu.h");
_Static_assert(sizeof(wr_wg_buffer_desc) == 48, "as in webgpu.h");

/* Entry, symbol, result, parameters. */
#define WR_WG_LIST(X)                                                                    \
    X(instance_create, wgpuCreateInstance, wr_wg_instance, (const void *desc))           \
    X(instance_request, wgpuInstanceRequestAdapter, wr_wg_future,                        \
      (wr_wg_instance instance, const wr_wg_adapter_options *options,                    \
       wr_wg_adapter_callback callback))                                                 \
    X(instance_process, wgpuInstanceProcessEvents, void, (wr_wg_instance instance))      \
    X(instance_release, wgpuInstanceRelease, void, (wr_wg_instance instance))            \
    X(adapter_info, wgpuAdapterGetInfo, uint32_t,                                        \
      (wr_wg_adapter adapter, wr_wg_adapter_info * info))                                \
    X(adapter_info_free, wgpuAdapterInfoFreeMembers, void, (wr_wg_adapter_info info))    \
    X(adapter_limits, wgpuAdapterGetLimits, uint32_t,                                    \
      (wr_wg_adapter adapter, wr_wg_limits * limits))                                    \
    X(adapter_request, wgpuAdapterRequestDevice, wr_wg_future,                           \
      (wr_wg_adapter adapter, const wr_wg_device_desc *desc,                             \
       wr_wg_device_callback callback))                                                  \
    X(adapter_release, wgpuAdapterRelease, void, (wr_wg_adapter adapter))                \
    X(device_queue, wgpuDeviceGetQueue, wr_wg_queue, (wr_wg_device device))              \
    X(device_destroy, wgpuDeviceDestroy, void, (wr_wg_device device))                    \
    X(device_release, wgpuDeviceRelease, void, (wr_wg_device device))                    \
    X(scope_push, wgpuDevicePushErrorScope, void,                                        \
      (wr_wg_device device, uint32_t filter))                                            \
    X(scope_pop, wgpuDevicePopErrorScope, wr_wg_future,                                  \
      (wr_wg_device device, wr_wg_scope_callback callback))                              \
    X(buffer_create, wgpuDeviceCreateBuffer, wr_wg_buffer,                               \
      (wr_wg_device device, const wr_wg_buffer_desc *desc))                              \
    X(buffer_map, wgpuBufferMapAsync, wr_wg_future,                                      \
      (wr_wg_buffer buffer, uint64_t mode, size_t offset, size_t bytes,                  \
       wr_wg_done_callback callback))                                                    \
    X(buffer_mapped, wgpuBufferGetMappedRange, void *,                                   \
      (wr_wg_buffer buffer, size_t offset, size_t bytes))                                \
    X(buffer_mapped_const, wgpuBufferGetConstMappedRange, const void *,                  \
      (wr_wg_buffer buffer, size_t offset, size_t bytes))                                \
    X(buffer_unmap, wgpuBufferUnmap, void, (wr_wg_buffer buffer))                        \
    X(buffer_destroy, wgpuBufferDestroy, void, (wr_wg_buffer buffer))                    \
    X(buffer_release, wgpuBufferRelease, void, (wr_wg_buffer buffer))                    \
    X(encoder_create, wgpuDeviceCreateCommandEncoder, wr_wg_encoder,                     \
      (wr_wg_device device, const wr_wg_label *desc))                                    \
    X(encoder_copy, wgpuCommandEncoderCopyBufferToBuffer, void,                          \
      (wr_wg_encoder encoder, wr_wg_buffer from, uint64_t from_offset, wr_wg_buffer to,  \
       uint64_t to_offset, uint64_t bytes))                                              \
    X(encoder_finish, wgpuCommandEncoderFinish, wr_wg_commands,                          \
      (wr_wg_encoder encoder, const wr_wg_label *desc))                                  \
    X(encoder_release, wgpuCommandEncoderRelease, void, (wr_wg_encoder encoder))         \
    X(commands_release, wgpuCommandBufferRelease, void, (wr_wg_commands commands))       \
    X(shader_create, wgpuDeviceCreateShaderModule, wr_wg_shader,                         \
      (wr_wg_device device, const wr_wg_label *desc))                                    \
    X(shader_release, wgpuShaderModuleRelease, void, (wr_wg_shader shader))              \
    X(group_layout_create, wgpuDeviceCreateBindGroupLayout, wr_wg_group_layout,          \
      (wr_wg_device device, const wr_wg_group_layout_desc *desc))                        \
    X(group_layout_release, wgpuBindGroupLayoutRelease, void,                            \
      (wr_wg_group_layout layout))                                                       \
    X(group_create, wgpuDeviceCreateBindGroup, wr_wg_group,                              \
      (wr_wg_device device, const wr_wg_group_desc *desc))                               \
    X(group_release, wgpuBindGroupRelease, void, (wr_wg_group group))                    \
    X(pipeline_layout_create, wgpuDeviceCreatePipelineLayout, wr_wg_pipeline_layout,     \
      (wr_wg_device device, const wr_wg_pipeline_layout_desc *desc))                     \
    X(pipeline_layout_release, wgpuPipelineLayoutRelease, void,                          \
      (wr_wg_pipeline_layout layout))                                                    \
    X(pipeline_create, wgpuDeviceCreateComputePipeline, wr_wg_pipeline,                  \
      (wr_wg_device device, const wr_wg_pipeline_desc *desc))                            \
    X(pipeline_release, wgpuComputePipelineRelease, void, (wr_wg_pipeline pipeline))     \
    X(pass_begin, wgpuCommandEncoderBeginComputePass, wr_wg_pass,                        \
      (wr_wg_encoder encoder, const void *desc))                                         \
    X(pass_pipeline, wgpuComputePassEncoderSetPipeline, void,                            \
      (wr_wg_pass pass, wr_wg_pipeline pipeline))                                        \
    X(pass_group, wgpuComputePassEncoderSetBindGroup, void,                              \
      (wr_wg_pass pass, uint32_t index, wr_wg_group group, size_t offset_count,          \
       const uint32_t *offsets))                                                         \
    X(pass_dispatch, wgpuComputePassEncoderDispatchWorkgroups, void,                     \
      (wr_wg_pass pass, uint32_t x, uint32_t y, uint32_t z))                             \
    X(pass_end, wgpuComputePassEncoderEnd, void, (wr_wg_pass pass))                      \
    X(pass_release, wgpuComputePassEncoderRelease, void, (wr_wg_pass pass))              \
    X(queue_submit, wgpuQueueSubmit, void,                                               \
      (wr_wg_queue queue, size_t count, const wr_wg_commands *commands))                 \
    X(queue_done, wgpuQueueOnSubmittedWorkDone, wr_wg_future,                            \
      (wr_wg_queue queue, wr_wg_done_callback callback))                                 \
    X(queue_release, wgpuQueueRelease, void, (wr_wg_queue queue))

/* Those that may be missing; NULL then. */
#define WR_WG_OPTIONAL_LIST(X)                                                           \
    X(heaps_free, wgpuAdapterPropertiesMemoryHeapsFreeMembers, void, (wr_wg_heaps heaps))

typedef struct wr_wg_api {
#define WR_WG_ENTRY(name, symbol, result, parameters) result(*name) parameters;
    WR_WG_LIST(WR_WG_ENTRY)
    WR_WG_OPTIONAL_LIST(WR_WG_ENTRY)
#undef WR_WG_ENTRY
} wr_wg_api;

/* Loads the library: $WEIR_WEBGPU_LIBRARY, an absolute path, or the first of the known
 * names that the system's loader finds. NOT_FOUND if there is none, INVALID for a
 * relative path, UNSUPPORTED for a library of an older ABI. */
weir_result wr_wg_load(wr_wg_api *api);

/* How long a text is, for %.*s. */
int wr_wg_length(wr_wg_text text);

#endif
