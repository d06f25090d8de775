/* OpenReg device driver: the C API that everything above the device builds on.
 *
 * It has the shape of a vendor's driver API and knows nothing of PyTorch. Every function that can
 * fail returns an oregError_t; the calling thread's last error, with a message that says what was
 * wrong with which argument, is kept until it is read.
 *
 * Memory. A device pointer is an address inside the device's window, which is reserved without any
 * access right: a host program that dereferences one faults, as with a real accelerator. The bytes
 * themselves are mapped a second time, readable and writable, at a constant distance
 * (oregGetKernelOffset). Only kernels, that is functions started with oregLaunch or between
 * oregKernelBegin and oregKernelEnd, may use that mapping.
 *
 * Streams. A stream is an ordered queue. Work submitted to an idle stream runs at once on the
 * calling thread, so that a small kernel costs no thread switch (but see OPENREG_LAUNCH); work
 * submitted to a busy stream is queued for the stream's own worker thread. Different streams
 * overlap. Stream NULL is the default stream of the calling thread's current device.
 *
 * Environment, read once, at the first call that needs it:
 *
 *   OPENREG_DEVICE_COUNT  number of devices, 1 to 64 (default 2)
 *   OPENREG_MEMORY        bytes per device, rounded down to whole pages (default 8GiB), with an
 *                         optional suffix K, M, G, KiB, MiB or GiB, all powers of 1024
 *   OPENREG_VISIBLE_DEVICES
 *                         the devices that this process sees, as a comma-separated list of their
 *                         numbers; they are numbered anew in the order of the list. Empty or -1:
 * none. OPENREG_LAUNCH        inline (default): work submitted to an idle stream runs at once on
 * the calling thread. async: it is left to the stream's worker thread, as on a real accelerator, so
 * that a missing synchronization shows.
 *
 * A value that does not parse is an error and never replaced by a default; the next call reads the
 * variables again.
 *
 * Fork. A child forked after the driver was started cannot use the device: calls that need it
 * return oregErrorForked. A child of a process that has not started it can.
 */
#ifndef OPENREG_H_
#define OPENREG_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OREG_API __attribute__((visibility("default")))

/* major * 1000 + minor */
#define OREG_DRIVER_VERSION 1000

typedef enum oregError_t {
  oregSuccess = 0,
  /* An argument is out of range, null, or no pointer of this driver. */
  oregErrorInvalidValue = 1,
  /* The device (or host) has not enough memory left. */
  oregErrorMemoryAllocation = 2,
  /* An OPENREG_* variable does not parse. */
  oregErrorInvalidConfiguration = 3,
  /* The system refused the address windows, or a thread. */
  oregErrorInitialization = 4,
  /* The device was in use before fork(); the child cannot use it. */
  oregErrorForked = 5,
  /* No device of that index. */
  oregErrorInvalidDevice = 6,
  /* The pointers are not of the kinds that the direction names. */
  oregErrorInvalidMemcpyDirection = 7,
  /* A destroyed or foreign stream or event, or one of another device. */
  oregErrorInvalidResourceHandle = 8,
  /* Not an error, and not recorded as one: the work asked about has not finished. */
  oregErrorNotReady = 9,
  /* A kernel that ran earlier threw a C++ exception. */
  oregErrorLaunchFailure = 10,
  /* OPENREG_VISIBLE_DEVICES hides all devices. */
  oregErrorNoDevice = 11,
} oregError_t;

typedef enum oregMemcpyKind {
  oregMemcpyHostToHost = 0,
  oregMemcpyHostToDevice = 1,
  oregMemcpyDeviceToHost = 2,
  oregMemcpyDeviceToDevice = 3,
} oregMemcpyKind;

typedef enum oregLaunchMode { /* the two values of OPENREG_LAUNCH */
                              oregLaunchInline = 0,
                              oregLaunchAsync = 1,
} oregLaunchMode;

typedef enum oregMemoryType {
  oregMemoryTypeUnregistered = 0, /* host memory that this driver does not know */
  oregMemoryTypeHost = 1,         /* from oregMallocHost (page-locked, in CUDA's terms) */
  oregMemoryTypeDevice = 2,
} oregMemoryType;

typedef struct oregPointerAttributes {
  oregMemoryType type;
  int device; /* -1 unless type is oregMemoryTypeDevice */
} oregPointerAttributes;

typedef struct oregDeviceProp {
  char name[128];
  size_t totalMemory;      /* bytes */
  int multiProcessorCount; /* compute units: the processors that kernels run on */
  int driverVersion;
  int ordinal; /* the device's number without OPENREG_VISIBLE_DEVICES */
} oregDeviceProp;

typedef struct oregStream_st* oregStream_t;
typedef struct oregEvent_st* oregEvent_t;

/* Work of a stream. A value other than oregSuccess is kept and reported, once, by the stream's next
 * synchronization: oregStreamSynchronize, oregDeviceSynchronize, or a copy that waits. */
typedef oregError_t (*oregKernel_t)(void* argument);

/* ---- Errors. None of these fails. ---- */

OREG_API const char* oregGetErrorName(oregError_t error);
/* One general sentence per code. */
OREG_API const char* oregGetErrorString(oregError_t error);
/* Of this thread; resets it to oregSuccess. */
OREG_API oregError_t oregGetLastError(void);
/* The same without the reset. */
OREG_API oregError_t oregPeekAtLastError(void);
/* The particulars; valid until this thread's next error. */
OREG_API const char* oregGetLastErrorMessage(void);

/* ---- Devices. Queries never change the current device and start nothing. ---- */

OREG_API oregError_t oregDriverGetVersion(int* version);
OREG_API oregError_t oregGetDeviceCount(int* count);
/* The current device is the calling thread's own; 0 at first. */
OREG_API oregError_t oregGetDevice(int* device);
OREG_API oregError_t oregSetDevice(int device);
OREG_API oregError_t oregGetDeviceProperties(oregDeviceProp* properties, int device);
/* 1 if kernels of the first device can use memory of the other; so it is for any two devices. */
OREG_API oregError_t oregDeviceCanAccessPeer(int* canAccess, int device, int peer);
/* Waits for all streams of the current device. */
OREG_API oregError_t oregDeviceSynchronize(void);
/* 1 in a child forked after the device was in use. */
OREG_API int oregIsInBadFork(void);
/* 1 once the windows are reserved. */
OREG_API int oregIsInitialized(void);

/* ---- Memory ---- */

/* On the current device, 512-byte aligned. 0 bytes give NULL. */
OREG_API oregError_t oregMalloc(void** pointer, size_t bytes);
/* Waits for all queued work. NULL is allowed. */
OREG_API oregError_t oregFree(void* pointer);
/* Bytes of the current device. */
OREG_API oregError_t oregMemGetInfo(size_t* free, size_t* total);
/* Never waits: the memory is freed when the work submitted to the stream before has finished. No
 * other stream may be using it. The pointer is invalid at once. NULL is allowed. */
OREG_API oregError_t oregFreeAsync(void* pointer, oregStream_t stream);
OREG_API oregError_t oregMallocHost(void** pointer, size_t bytes);
/* Waits for all queued work. NULL is allowed. */
OREG_API oregError_t oregFreeHost(void* pointer);
/* As oregFreeAsync. */
OREG_API oregError_t oregFreeHostAsync(void* pointer, oregStream_t stream);
/* Does not start the driver. oregErrorInvalidValue for a device address in no allocation. */
OREG_API oregError_t oregPointerGetAttributes(oregPointerAttributes* attributes,
                                              const void* pointer);

/* Copies and sets take ranges that lie inside one live allocation; 0 bytes take any pointer. Those
 * without a stream run in the order of the NULL stream, and have run when they return. The others
 * run in the order of their stream; where one side is host memory that is not from oregMallocHost,
 * they too have run when they return. A call that has to wait reports the stream's kept error
 * instead of copying. */
OREG_API oregError_t oregMemcpy(void* dst, const void* src, size_t bytes, oregMemcpyKind kind);
OREG_API oregError_t oregMemcpyAsync(void* dst, const void* src, size_t bytes, oregMemcpyKind kind,
                                     oregStream_t stream);
OREG_API oregError_t oregMemset(void* dst, int value, size_t bytes);
OREG_API oregError_t oregMemsetAsync(void* dst, int value, size_t bytes, oregStream_t stream);

/* ---- Streams ---- */

/* A priority is kept and reported and has no other effect: every stream has its own worker, and the
 * system schedules them. */
OREG_API oregError_t oregDeviceGetStreamPriorityRange(int* least, int* greatest);
/* On the current device. */
OREG_API oregError_t oregStreamCreateWithPriority(oregStream_t* stream, int priority);
/* Queued work still runs; an error it leaves is reported by the device's next synchronization.
 * Neither a default stream nor, in a kernel, the kernel's own stream can be destroyed. */
OREG_API oregError_t oregStreamDestroy(oregStream_t stream);
OREG_API oregError_t oregStreamGetPriority(oregStream_t stream, int* priority);
OREG_API oregError_t oregStreamGetDevice(oregStream_t stream, int* device);
/* oregSuccess when idle, oregErrorNotReady otherwise. */
OREG_API oregError_t oregStreamQuery(oregStream_t stream);
OREG_API oregError_t oregStreamSynchronize(oregStream_t stream);
/* Keeps the stream busy for this long once it comes to it. Always left to the stream's worker. */
OREG_API oregError_t oregStreamDelay(oregStream_t stream, uint64_t microseconds);
/* What is submitted to the stream from now on starts after the event's last record so far, which
 * may be on any stream of any device. */
OREG_API oregError_t oregStreamWaitEvent(oregStream_t stream, oregEvent_t event);
OREG_API oregError_t oregDeviceGetDefaultStream(oregStream_t* stream, int device);

/* ---- Events ---- */

#define oregEventDefault 0u
#define oregEventEnableTiming 1u
/* On the current device. */
OREG_API oregError_t oregEventCreateWithFlags(oregEvent_t* event, unsigned flags);
/* Who waits for the event already is not affected. */
OREG_API oregError_t oregEventDestroy(oregEvent_t event);
/* The stream must be of the event's device. */
OREG_API oregError_t oregEventRecord(oregEvent_t event, oregStream_t stream);
/* oregSuccess when reached or never recorded, oregErrorNotReady otherwise. */
OREG_API oregError_t oregEventQuery(oregEvent_t event);
OREG_API oregError_t oregEventSynchronize(oregEvent_t event);
/* oregErrorNotReady until both are reached; oregErrorInvalidResourceHandle unless both are of one
 * device, were created with oregEventEnableTiming, and were recorded. */
OREG_API oregError_t oregEventElapsedTime(float* milliseconds, oregEvent_t start, oregEvent_t end);

/* ---- Kernels ---- */

/* Bytes to add to a device pointer, of any device, to get the address at which kernels see the same
 * byte. */
OREG_API oregError_t oregGetKernelOffset(ptrdiff_t* offset);

OREG_API oregError_t oregGetLaunchMode(oregLaunchMode* mode);

/* 1 if the calling thread is running a kernel, of any stream. Such a thread must not wait for other
 * streams. */
OREG_API int oregIsInKernel(void);

/* Run kernel(argument) in the order of the stream. On an idle stream it has run when the call
 * returns, unless OPENREG_LAUNCH is async. */
OREG_API oregError_t oregLaunch(oregKernel_t kernel, void* argument, oregStream_t stream);

/* The same for a kernel that is the calling code itself: after oregKernelBegin everything submitted
 * to the stream before has finished, and nothing submitted later starts before oregKernelEnd. The
 * calling thread may nest pairs on the same stream.
 *
 * What a kernel of either kind submits to its own stream runs at once, as a part of it. A kernel
 * must not wait for a stream that waits for the kernel's own; oregFree and oregFreeHost wait for
 * all streams. */
OREG_API oregError_t oregKernelBegin(oregStream_t stream);
OREG_API oregError_t oregKernelEnd(oregStream_t stream);

/* ---- Activities: what the device has done, for profilers ---- */

typedef enum oregActivityKind {
  oregActivityKernel = 0,
  oregActivityMemcpy = 1,
  oregActivityMemset = 2,
  oregActivityDelay = 3,
} oregActivityKind;

typedef struct oregActivity {
  oregActivityKind kind;
  int device;
  oregStream_t stream;       /* never NULL */
  uint64_t correlation;      /* of the submitting thread at the time; 0 if it had none */
  size_t bytes;              /* of a copy or a set */
  oregMemcpyKind copyKind;   /* of a copy */
  uint64_t startNanoseconds; /* since 1970, by the system's clock */
  uint64_t endNanoseconds;
} oregActivity;

/* Called on the thread that ran the work, in its stream's order, when it has finished. It must not
 * call this driver. */
typedef void (*oregActivityCallback_t)(const oregActivity* activity, void* argument);

/* Reports work that is submitted from now on. There is one subscriber at a time. */
OREG_API oregError_t oregActivitySubscribe(oregActivityCallback_t callback, void* argument);
/* Waits for all queued work; the callback is not called any more when this returns. */
OREG_API oregError_t oregActivityUnsubscribe(void);
/* Numbers, which the caller chooses, for what the calling thread submits between the two calls. The
 * pairs nest. */
OREG_API oregError_t oregActivityPushCorrelation(uint64_t id);
OREG_API oregError_t oregActivityPopCorrelation(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OPENREG_H_ */
