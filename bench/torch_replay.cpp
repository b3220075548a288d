// SPDX-License-Identifier: MIT
// Plays a trace on PyTorch's CUDA allocator, called as directly as it can be: its C++
// interface, with no Python and no tensor in between. torch_replay.py builds and runs it.
//
//   torch_replay TRACE PASSES     the trace as plain text: a ID BYTES STREAM, f ID STREAM
//
// Prints one JSON object: nanoseconds per operation of each pass, without those of the
// loop around them, and the peak of the reserved bytes.
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

// What libtorch_cuda.so, which is not loaded, would set: whether a device has a context.
namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace allocator = c10::cuda::CUDACachingAllocator;

struct Operation {
    uint64_t bytes; // 0: a free
    uint32_t slot;
    uint32_t stream;
};

struct Trace {
    std::vector<Operation> operations;
    std::vector<uint32_t> live; // slots that nobody frees
    uint32_t slot_count = 0;
    uint32_t stream_count = 0;
};

static Trace read_trace(const char *path)
{
    Trace trace;
    std::ifstream file(path);
    std::unordered_map<uint64_t, uint32_t> slots;
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string kind;
        uint64_t id = 0, bytes = 0;
        uint32_t stream = 0;
        words >> kind;
        if (kind == "a" && words >> id >> bytes >> stream && bytes > 0) {
            slots[id] = trace.slot_count;
            trace.operations.push_back({bytes, trace.slot_count++, stream});
        } else if (kind == "f" && words >> id && slots.count(id) != 0) {
            words >> stream;
            trace.operations.push_back({0, slots[id], stream});
            slots.erase(id);
        }
        trace.stream_count = stream >= trace.stream_count ? stream + 1 : trace.stream_count;
    }
    for (const auto &slot : slots) {
        trace.live.push_back(slot.second);
    }
    return trace;
}

static double now_ns()
{
    using namespace std::chrono;
    return (double)duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

static void check(cudaError_t error, const char *call)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "torch_replay: %s: %s\n", call, cudaGetErrorString(error));
        std::exit(1);
    }
}

static double play(const Trace &trace, std::vector<void *> &slots,
                   const std::vector<cudaStream_t> &streams)
{
    auto *direct = allocator::get();
    double start = now_ns();
    for (const Operation &op : trace.operations) {
        if (op.bytes != 0) {
            slots[op.slot] = direct->raw_alloc_with_stream(op.bytes, streams[op.stream]);
        } else {
            direct->raw_delete(slots[op.slot]);
        }
    }
    return now_ns() - start;
}

// The same loop without the calls.
static double play_nothing(const Trace &trace, std::vector<void *> &slots)
{
    double start = now_ns();
    for (const Operation &op : trace.operations) {
        void *volatile made = op.bytes != 0 ? (void *)(uintptr_t)op.stream : nullptr;
        slots[op.slot] = made;
    }
    return now_ns() - start;
}

static int run(const char *path, int passes)
{
    Trace trace = read_trace(path);
    std::vector<void *> slots(trace.slot_count + 1);
    std::vector<cudaStream_t> streams(trace.stream_count);
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaFree(nullptr), "cudaFree");
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    allocator::init(1);
    for (auto &stream : streams) {
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    double loop_ns = play_nothing(trace, slots);
    std::printf("{\"operations\": %zu, \"ns_per_operation\": [", trace.operations.size());
    for (int pass = 0; pass < passes; pass++) {
        double spent_ns = play(trace, slots, streams) - loop_ns;
        std::printf("%s%.1f", pass > 0 ? ", " : "",
                    spent_ns / (double)trace.operations.size());
        for (uint32_t slot : trace.live) {
            allocator::raw_delete(slots[slot]);
        }
    }
    auto stats = allocator::getDeviceStats(0);
    std::printf("], \"peak_reserved_bytes\": %lld, \"backend\": \"%s\"}\n",
                (long long)stats.reserved_bytes[0].peak, allocator::name().c_str());
    allocator::emptyCache();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        std::fprintf(stderr, "usage: torch_replay TRACE PASSES\n");
        return 2;
    }
    return run(argv[1], std::atoi(argv[2]));
}
