#include <cstring>
#include <set>

#include "support.h"

namespace {

TEST(Error, EveryCodeHasItsOwnNameAndSentence) {
  std::set<std::string> names;
  std::set<std::string> sentences;
  for (int code = oregSuccess; code <= oregErrorLaunchFailure; ++code) {
    names.insert(oregGetErrorName(static_cast<oregError_t>(code)));
    sentences.insert(oregGetErrorString(static_cast<oregError_t>(code)));
  }
  EXPECT_EQ(names.size(), 11u);
  EXPECT_EQ(sentences.size(), 11u);
  EXPECT_STREQ(oregGetErrorName(oregErrorInvalidValue), "oregErrorInvalidValue");
  EXPECT_STREQ(oregGetErrorName(static_cast<oregError_t>(15)), "oregErrorUnknown");
}

class ErrorTest : public DriverTest {};

TEST_F(ErrorTest, LastErrorStaysUntilItIsRead) {
  EXPECT_EQ(oregSetDevice(99), oregErrorInvalidDevice);
  EXPECT_OK(oregSetDevice(0));  // success does not clear it
  EXPECT_EQ(oregPeekAtLastError(), oregErrorInvalidDevice);
  EXPECT_EQ(oregPeekAtLastError(), oregErrorInvalidDevice);
  EXPECT_EQ(oregGetLastError(), oregErrorInvalidDevice);
  EXPECT_EQ(oregGetLastError(), oregSuccess);
  EXPECT_STREQ(
      oregGetLastErrorMessage(),
      "there is no device 99: this process has 2, numbered from 0 (see OPENREG_DEVICE_COUNT "
      "and OPENREG_VISIBLE_DEVICES)");
}

TEST_F(ErrorTest, LastErrorIsPerThread) {
  EXPECT_EQ(oregSetDevice(99), oregErrorInvalidDevice);
  std::thread([] {
    EXPECT_EQ(oregPeekAtLastError(), oregSuccess);
    EXPECT_STREQ(oregGetLastErrorMessage(), "");
    EXPECT_EQ(oregSetDevice(-1), oregErrorInvalidDevice);
  }).join();
  EXPECT_NE(std::strstr(oregGetLastErrorMessage(), "no device 99"), nullptr);
}

class DeviceTest : public DriverTest {};

TEST_F(DeviceTest, CountVersionAndProperties) {
  int count = 0;
  EXPECT_OK(oregGetDeviceCount(&count));
  EXPECT_EQ(count, 2);
  int version = 0;
  EXPECT_OK(oregDriverGetVersion(&version));
  EXPECT_EQ(version, OREG_DRIVER_VERSION);
  for (int device = 0; device < count; ++device) {
    oregDeviceProp properties{};
    EXPECT_OK(oregGetDeviceProperties(&properties, device));
    EXPECT_STREQ(properties.name, "OpenReg Simulated Accelerator");
    EXPECT_EQ(properties.totalMemory, std::size_t{8} << 30);
    EXPECT_GE(properties.multiProcessorCount, 1);
    EXPECT_LE(properties.multiProcessorCount,
              static_cast<int>(std::thread::hardware_concurrency()));
    EXPECT_EQ(properties.driverVersion, OREG_DRIVER_VERSION);
  }
}

TEST_F(DeviceTest, UnknownIndexIsAnErrorAndChangesNothing) {
  EXPECT_OK(oregSetDevice(1));
  for (const int device : {-1, 2, 1 << 30}) {
    oregDeviceProp properties{};
    oregStream_t stream = nullptr;
    const std::string text = "no device " + std::to_string(device);
    EXPECT_ERROR(oregErrorInvalidDevice, text, oregSetDevice(device));
    EXPECT_ERROR(oregErrorInvalidDevice, text, oregGetDeviceProperties(&properties, device));
    EXPECT_ERROR(oregErrorInvalidDevice, text, oregDeviceGetDefaultStream(&stream, device));
    EXPECT_EQ(stream, nullptr);
  }
  int current = -1;
  EXPECT_OK(oregGetDevice(&current));
  EXPECT_EQ(current, 1);
}

TEST_F(DeviceTest, CurrentDeviceIsPerThread) {
  EXPECT_OK(oregSetDevice(1));
  std::thread([] {
    int device = -1;
    EXPECT_OK(oregGetDevice(&device));
    EXPECT_EQ(device, 0);
  }).join();
  int device = -1;
  EXPECT_OK(oregGetDevice(&device));
  EXPECT_EQ(device, 1);
}

TEST_F(DeviceTest, NullResultPointerIsAnError) {
  int number = 0;
  std::size_t bytes = 0;
  const oregEvent_t event = createEvent(oregEventEnableTiming);
  EXPECT_ERROR(oregErrorInvalidValue, "'version'", oregDriverGetVersion(nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "'count'", oregGetDeviceCount(nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "'device'", oregGetDevice(nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "'properties'", oregGetDeviceProperties(nullptr, 0));
  EXPECT_ERROR(oregErrorInvalidValue, "'pointer'", oregMalloc(nullptr, 8));
  EXPECT_ERROR(oregErrorInvalidValue, "'pointer'", oregMallocHost(nullptr, 8));
  EXPECT_ERROR(oregErrorInvalidValue, "'free'", oregMemGetInfo(nullptr, &bytes));
  EXPECT_ERROR(oregErrorInvalidValue, "'total'", oregMemGetInfo(&bytes, nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "'attributes'", oregPointerGetAttributes(nullptr, &number));
  EXPECT_ERROR(oregErrorInvalidValue, "'least'",
               oregDeviceGetStreamPriorityRange(nullptr, &number));
  EXPECT_ERROR(oregErrorInvalidValue, "'greatest'",
               oregDeviceGetStreamPriorityRange(&number, nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "'stream'", oregStreamCreateWithPriority(nullptr, 0));
  EXPECT_ERROR(oregErrorInvalidValue, "'priority'", oregStreamGetPriority(nullptr, nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "'device'", oregStreamGetDevice(nullptr, nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "'stream'", oregDeviceGetDefaultStream(nullptr, 0));
  EXPECT_ERROR(oregErrorInvalidValue, "'event'", oregEventCreateWithFlags(nullptr, 0));
  EXPECT_ERROR(oregErrorInvalidValue, "'milliseconds'",
               oregEventElapsedTime(nullptr, event, event));
  EXPECT_ERROR(oregErrorInvalidValue, "'offset'", oregGetKernelOffset(nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "kernel to launch is null",
               oregLaunch(nullptr, nullptr, nullptr));
  EXPECT_OK(oregEventDestroy(event));
}

TEST_F(DeviceTest, DevicesCanAccessEachOther) {
  int can = -1;
  EXPECT_OK(oregDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  EXPECT_OK(oregDeviceCanAccessPeer(&can, 1, 1));
  EXPECT_EQ(can, 0);
  EXPECT_ERROR(oregErrorInvalidDevice, "no device 2", oregDeviceCanAccessPeer(&can, 0, 2));
  EXPECT_ERROR(oregErrorInvalidValue, "canAccess", oregDeviceCanAccessPeer(nullptr, 0, 1));
}

}  // namespace
