/* SPDX-License-Identifier: MIT */
/* The part of the CUDA driver API that this driver calls, declared here so that building
 * needs no CUDA toolkit. The library is loaded when a device is opened and never
 * unloaded: it has threads of its own.
 *
 * Layouts, numbers and signatures are those of cuda.h 13.0 (CUDA_VERSION 13000). Each
 * entry is looked up by the symbol of one ABI version, which the library keeps for good;
 * the number beside it is the first CUDA that has it. */
#ifndef WR_DRIVER_CUDA_API_H
#define WR_DRIVER_CUDA_API_H

#include <weir/base.h>

/* CUresult: what is told apart here. */
typedef enum wr_cu_result {
    WR_CU_SUCCESS = 0,
    WR_CU_INVALID_VALUE = 1,
    WR_CU_OUT_OF_MEMORY = 2,
    WR_CU_DEINITIALIZED = 4,
    WR_CU_NO_DEVICE = 100,
    WR_CU_INVALID_DEVICE = 101,
    WR_CU_INVALID_CONTEXT = 201,
    WR_CU_ECC_UNCORRECTABLE = 214,
    WR_CU_NVLINK_UNCORRECTABLE = 220,
    WR_CU_CONTAINED = 226,
    WR_CU_OPERATING_SYSTEM = 304,
    WR_CU_INVALID_HANDLE = 400,
    WR_CU_NOT_READY = 600,
    WR_CU_ILLEGAL_ADDRESS = 700,
    WR_CU_LAUNCH_TIMEOUT = 702,
    WR_CU_CONTEXT_IS_DESTROYED = 709,
    WR_CU_ASSERT = 710,
    WR_CU_HARDWARE_STACK_ERROR = 714,
    WR_CU_ILLEGAL_INSTRUCTION = 715,
    WR_CU_MISALIGNED_ADDRESS = 716,
    WR_CU_INVALID_ADDRESS_SPACE = 717,
    WR_CU_INVALID_PC = 718,
    WR_CU_LAUNCH_FAILED = 719,
    WR_CU_TENSOR_MEMORY_LEAK = 721,
    WR_CU_NOT_SUPPORTED = 801,
    WR_CU_MPS_CLIENT_TERMINATED = 810,
    WR_CU_CAPTURE_UNSUPPORTED = 900, /* the first of those about captures... */
    WR_CU_CAPTURE_LAST = 908,        /* ...and the last */
    WR_CU_EXTERNAL_DEVICE = 911,
    WR_CU_UNKNOWN = 999,
} wr_cu_result;

typedef int wr_cu_device;                             /* CUdevice */
typedef struct wr_cu_context_opaque *wr_cu_context;   /* CUcontext */
typedef struct wr_cu_stream_opaque *wr_cu_stream;     /* CUstream */
typedef struct wr_cu_event_opaque *wr_cu_event;       /* CUevent */
typedef struct wr_cu_graph_opaque *wr_cu_graph;       /* CUgraph */
typedef struct wr_cu_exec_opaque *wr_cu_exec;         /* CUgraphExec */
typedef struct wr_cu_module_opaque *wr_cu_module;     /* CUmodule */
typedef struct wr_cu_function_opaque *wr_cu_function; /* CUfunction */
typedef unsigned long long wr_cu_address;             /* CUdeviceptr_v2 */
typedef unsigned long long wr_cu_handle; /* CUmemGenericAllocationHandle_v1 */

enum {
    WR_CU_ATTRIBUTE_MULTIPROCESSORS = 16,
    WR_CU_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    WR_CU_ATTRIBUTE_CAPABILITY_MINOR = 76,
    WR_CU_ATTRIBUTE_VIRTUAL_MEMORY = 102, /* ..._VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
    WR_CU_ATTRIBUTE_HANDLE_FILE = 103,    /* ..._HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_... */
    WR_CU_HANDLE_FILE = 1,                /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
    WR_CU_HOST_PORTABLE = 1, /* CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts */
    WR_CU_STREAM_NON_BLOCKING = 1,
    WR_CU_EVENT_DISABLE_TIMING = 2,
    WR_CU_CAPTURE_RELAXED = 2, /* CU_STREAM_CAPTURE_MODE_RELAXED */
    WR_CU_LOCATION_DEVICE = 1,
    WR_CU_ALLOCATION_PINNED = 1, /* the only type there is for device memory */
    WR_CU_ACCESS_READWRITE = 3,
    WR_CU_GRANULARITY_RECOMMENDED = 1,
};

/* CUuuid */
typedef struct wr_cu_uuid {
    unsigned char bytes[16];
} wr_cu_uuid;

/* CUmemLocation_v1 */
typedef struct wr_cu_location {
    int type;
    int id;
} wr_cu_location;

/* CUmemAllocationProp_v1 */
typedef struct wr_cu_allocation {
    int type;
    int handle_types;
    wr_cu_location location;
    void *win32_metadata;
    unsigned char compression;
    unsigned char rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
} wr_cu_allocation;

/* CUmemAccessDesc_v1 */
typedef struct wr_cu_access {
    wr_cu_location location;
    int flags;
} wr_cu_access;

_Static_assert(sizeof(wr_cu_uuid) == 16, "as in cuda.h");
_Static_assert(sizeof(wr_cu_allocation) == 32, "as in cuda.h");
_Static_assert(offsetof(wr_cu_allocation, win32_metadata) == 16, "as in cuda.h");
_Static_assert(sizeof(wr_cu_access) == 12, "as in cuda.h");

/* Entry, symbol, first CUDA, parameters. All return CUresult. */
#define WR_CU_LIST(X)                                                                    \
    X(init, cuInit, 2000, (unsigned flags))                                              \
    X(error_name, cuGetErrorName, 6000, (wr_cu_result error, const char **name))         \
    X(error_text, cuGetErrorString, 6000, (wr_cu_result error, const char **text))       \
    X(device_count, cuDeviceGetCount, 2000, (int *count))                                \
    X(device_get, cuDeviceGet, 2000, (wr_cu_device * device, int ordinal))               \
    X(device_name, cuDeviceGetName, 2000, (char *name, int bytes, wr_cu_device device))  \
    X(device_uuid, cuDeviceGetUuid_v2, 11040, (wr_cu_uuid * uuid, wr_cu_device device))  \
    X(device_attribute, cuDeviceGetAttribute, 2000,                                      \
      (int *value, int attribute, wr_cu_device device))                                  \
    X(context_retain, cuDevicePrimaryCtxRetain, 7000,                                    \
      (wr_cu_context * context, wr_cu_device device))                                    \
    X(context_release, cuDevicePrimaryCtxRelease_v2, 11000, (wr_cu_device device))       \
    X(context_push, cuCtxPushCurrent_v2, 4000, (wr_cu_context context))                  \
    X(context_pop, cuCtxPopCurrent_v2, 4000, (wr_cu_context * context))                  \
    X(context_sync, cuCtxSynchronize, 2000, (void))                                      \
    X(memory_info, cuMemGetInfo_v2, 3020, (size_t * free_bytes, size_t * total_bytes))   \
    X(page_alloc, cuMemAlloc_v2, 3020, (wr_cu_address * address, size_t bytes))          \
    X(page_free, cuMemFree_v2, 3020, (wr_cu_address address))                            \
    X(host_alloc, cuMemHostAlloc, 2020, (void **memory, size_t bytes, unsigned flags))   \
    X(host_free, cuMemFreeHost, 2000, (void *memory))                                    \
    X(granularity, cuMemGetAllocationGranularity, 10020,                                 \
      (size_t * bytes, const wr_cu_allocation *what, int option))                        \
    X(reserve, cuMemAddressReserve, 10020,                                               \
      (wr_cu_address * address, size_t bytes, size_t alignment, wr_cu_address wanted,    \
       unsigned long long flags))                                                        \
    X(unreserve, cuMemAddressFree, 10020, (wr_cu_address address, size_t bytes))         \
    X(create, cuMemCreate, 10020,                                                        \
      (wr_cu_handle * handle, size_t bytes, const wr_cu_allocation *what,                \
       unsigned long long flags))                                                        \
    X(release, cuMemRelease, 10020, (wr_cu_handle handle))                               \
    X(export_handle, cuMemExportToShareableHandle, 10020,                                \
      (void *shareable, wr_cu_handle handle, int type, unsigned long long flags))        \
    X(import_handle, cuMemImportFromShareableHandle, 10020,                              \
      (wr_cu_handle * handle, void *shareable, int type))                                \
    X(map, cuMemMap, 10020,                                                              \
      (wr_cu_address address, size_t bytes, size_t offset, wr_cu_handle handle,          \
       unsigned long long flags))                                                        \
    X(unmap, cuMemUnmap, 10020, (wr_cu_address address, size_t bytes))                   \
    X(set_access, cuMemSetAccess, 10020,                                                 \
      (wr_cu_address address, size_t bytes, const wr_cu_access *access, size_t count))   \
    X(write, cuMemcpyHtoDAsync_v2, 3020,                                                 \
      (wr_cu_address to, const void *from, size_t bytes, wr_cu_stream stream))           \
    X(read, cuMemcpyDtoHAsync_v2, 3020,                                                  \
      (void *to, wr_cu_address from, size_t bytes, wr_cu_stream stream))                 \
    X(copy, cuMemcpyDtoDAsync_v2, 3020,                                                  \
      (wr_cu_address to, wr_cu_address from, size_t bytes, wr_cu_stream stream))         \
    X(stream_create, cuStreamCreate, 2000, (wr_cu_stream * stream, unsigned flags))      \
    X(stream_destroy, cuStreamDestroy_v2, 4000, (wr_cu_stream stream))                   \
    X(stream_query, cuStreamQuery, 2000, (wr_cu_stream stream))                          \
    X(stream_sync, cuStreamSynchronize, 2000, (wr_cu_stream stream))                     \
    X(stream_wait, cuStreamWaitEvent, 3020,                                              \
      (wr_cu_stream stream, wr_cu_event event, unsigned flags))                          \
    X(event_create, cuEventCreate, 2000, (wr_cu_event * event, unsigned flags))          \
    X(event_destroy, cuEventDestroy_v2, 4000, (wr_cu_event event))                       \
    X(event_record, cuEventRecord, 2000, (wr_cu_event event, wr_cu_stream stream))       \
    X(event_query, cuEventQuery, 2000, (wr_cu_event event))                              \
    X(event_sync, cuEventSynchronize, 2000, (wr_cu_event event))                         \
    X(capture_mode, cuThreadExchangeStreamCaptureMode, 10010, (int *mode))               \
    X(capture_begin, cuStreamBeginCapture_v2, 10010, (wr_cu_stream stream, int mode))    \
    X(capture_end, cuStreamEndCapture, 10000,                                            \
      (wr_cu_stream stream, wr_cu_graph * graph))                                        \
    X(graph_instantiate, cuGraphInstantiateWithFlags, 11040,                             \
      (wr_cu_exec * exec, wr_cu_graph graph, unsigned long long flags))                  \
    X(graph_destroy, cuGraphDestroy, 10000, (wr_cu_graph graph))                         \
    X(exec_destroy, cuGraphExecDestroy, 10000, (wr_cu_exec exec))                        \
    X(graph_launch, cuGraphLaunch, 10000, (wr_cu_exec exec, wr_cu_stream stream))        \
    X(module_load, cuModuleLoadData, 2000, (wr_cu_module * module, const void *image))   \
    X(module_unload, cuModuleUnload, 2000, (wr_cu_module module))                        \
    X(function_get, cuModuleGetFunction, 2000,                                           \
      (wr_cu_function * function, wr_cu_module module, const char *name))                \
    X(launch, cuLaunchKernel, 4000,                                                      \
      (wr_cu_function function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, \
       unsigned threads_x, unsigned threads_y, unsigned threads_z,                       \
       unsigned shared_bytes, wr_cu_stream stream, void **parameters, void **extra))

typedef struct wr_cu_api {
#define WR_CU_ENTRY(name, symbol, since, parameters) wr_cu_result(*name) parameters;
    WR_CU_LIST(WR_CU_ENTRY)
#undef WR_CU_ENTRY
} wr_cu_api;

/* Loads the library ($WEIR_CUDA_LIBRARY, an absolute path, or libcuda.so.1) and
 * initializes it. NOT_FOUND if there is none, or no device; INVALID for a relative path.
 */
weir_result wr_cu_load(wr_cu_api *api);

/* The result that a CUresult means, with a text that names `what` ("commit of 5 bytes"),
 * the CUDA call and CUDA's own words. NOT_READY and OK leave no text. */
weir_result wr_cu_failed(const wr_cu_api *api, wr_cu_result result, const char *what,
                         const char *call);

/* Loads a vendor's library: the absolute path in the environment variable, or the soname;
 * NULL, with a text in `*result`, if it cannot. */
void *wr_cu_open_library(const char *variable, const char *soname, weir_result *result);

#endif
