/* SPDX-License-Identifier: MIT
 *
 * gperftools' classes, as programs are compiled with them: names, and the order of the virtual
 * functions, are the binary interface of its so-version 4. */
#ifndef HAKMEM_TCMALLOC_EXTENSION_HPP
#define HAKMEM_TCMALLOC_EXTENSION_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#define TC_EXPORT __attribute__((visibility("default")))

namespace base {
struct MallocRange;
}

class TC_EXPORT SysAllocator {
public:
    virtual ~SysAllocator();
    virtual void *Alloc(std::size_t bytes, std::size_t *taken, std::size_t align) = 0;
};

class TC_EXPORT MallocExtension {
public:
    enum Ownership { kUnknownOwnership, kOwned, kNotOwned };
    struct FreeListInfo {
        std::size_t min_object_size, max_object_size, total_bytes_free;
        const char *type;
    };

    virtual ~MallocExtension();
    virtual bool VerifyAllMemory();
    virtual bool VerifyNewMemory(const void *block);
    virtual bool VerifyArrayNewMemory(const void *block);
    virtual bool VerifyMallocMemory(const void *block);
    virtual bool MallocMemoryStats(int *blocks, std::size_t *total, int *histogram);
    virtual void GetStats(char *text, int length);
    virtual void GetHeapSample(std::string *writer);
    virtual void GetHeapGrowthStacks(std::string *writer);
    virtual void Ranges(void *argument, void (*visit)(void *, const base::MallocRange *));
    virtual bool GetNumericProperty(const char *property, std::size_t *value);
    virtual bool SetNumericProperty(const char *property, std::size_t value);
    virtual void MarkThreadIdle();
    virtual void MarkThreadBusy();
    virtual SysAllocator *GetSystemAllocator();
    virtual void SetSystemAllocator(SysAllocator *allocator);
    virtual void ReleaseToSystem(std::size_t bytes);
    virtual void ReleaseFreeMemory();
    virtual void SetMemoryReleaseRate(double rate);
    virtual double GetMemoryReleaseRate();
    virtual std::size_t GetEstimatedAllocatedSize(std::size_t size);
    virtual std::size_t GetAllocatedSize(const void *block);
    virtual Ownership GetOwnership(const void *block);
    virtual void GetFreeListSizes(std::vector<FreeListInfo> *lists);
    virtual void **ReadStackTraces(int *period);
    virtual void **ReadHeapGrowthStackTraces();
    virtual std::size_t GetThreadCacheSize();
    virtual void MarkThreadTemporarilyIdle();

    static void Initialize();
    static MallocExtension *instance();
    static void Register(MallocExtension *extension);
};

/* The heap profile as text, for free; empty while nothing is sampled (profiler.cpp). nullptr: no
 * memory. */
char *tc_heap_profile();

#endif
