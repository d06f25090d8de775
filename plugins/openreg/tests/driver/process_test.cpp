// What can be seen only in a process of its own: the environment, the start of the driver, fork,
// faults and exit. Death tests of the "threadsafe" style run their statement in a new process.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "support.h"

namespace {

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Ends the process: status 0 if the condition holds.
[[noreturn]] void exitWith(bool condition) {
  std::fprintf(stderr, "%s\n", oregGetLastErrorMessage());
  std::exit(condition ? 0 : 1);
}

void setVariables(const char* count, const char* memory) {
  setenv("OPENREG_DEVICE_COUNT", count, 1);
  setenv("OPENREG_MEMORY", memory, 1);
}

TEST_F(ProcessTest, EnvironmentSetsCountAndMemory) {
  struct Valid {
    const char* count;
    const char* memory;
    std::size_t bytes;
  };
  const Valid cases[] = {
      {"1", "1048576", 1048576}, {"3", "64K", 65536},
      {"64", "1MiB", 1 << 20},   {"02", "2M", 2 << 20},
      {"4", "1GiB", 1 << 30},    {"1", "3G", std::size_t{3} << 30},
      {"2", "12KiB", 12288},     {"2", "10000", 8192 /* whole pages */},
  };
  for (const Valid& valid : cases) {
    SCOPED_TRACE(valid.memory);
    EXPECT_EXIT(
        {
          setVariables(valid.count, valid.memory);
          int count = 0;
          const bool counted = oregGetDeviceCount(&count) == oregSuccess;
          oregDeviceProp properties{};
          const bool described = oregGetDeviceProperties(&properties, count - 1) == oregSuccess;
          oregSetDevice(count - 1);
          void* pointer = nullptr;  // all of the last device
          const bool works =
              oregMalloc(&pointer, valid.bytes) == oregSuccess &&
              oregMemset(pointer, 1, valid.bytes < 65536 ? valid.bytes : 65536) == oregSuccess &&
              oregMalloc(&pointer, 1) == oregErrorMemoryAllocation;
          exitWith(counted && described && works && count == std::atoi(valid.count) &&
                   properties.totalMemory == valid.bytes);
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST_F(ProcessTest, InvalidEnvironmentIsAnErrorOfEveryCall) {
  for (const char* count :
       {"0", "65", "-1", "two", "2x", "", " 2", "1.5", "99999999999999999999"}) {
    SCOPED_TRACE(count);
    EXPECT_EXIT(
        {
          setVariables(count, "1MiB");
          int found = 77;
          void* pointer = nullptr;
          exitWith(oregGetDeviceCount(&found) == oregErrorInvalidConfiguration && found == 77 &&
                   oregSetDevice(0) == oregErrorInvalidConfiguration &&
                   oregMalloc(&pointer, 8) == oregErrorInvalidConfiguration &&
                   oregStreamSynchronize(nullptr) == oregErrorInvalidConfiguration);
        },
        testing::ExitedWithCode(0),
        "OPENREG_DEVICE_COUNT='" + std::string(count) +
            "' is not valid: give an integer from 1 to 64");
  }
  for (const char* memory : {"0", "4095", "-1", "lots", "8GB", "8g", "8 GiB", "", "1.5G", "1K1",
                             "18446744073709551615G", "16385GiB", "G"}) {
    SCOPED_TRACE(memory);
    EXPECT_EXIT(
        {
          setVariables("2", memory);
          int found = 77;
          exitWith(oregGetDeviceCount(&found) == oregErrorInvalidConfiguration && found == 77);
        },
        testing::ExitedWithCode(0),
        "OPENREG_MEMORY='" + std::string(memory) + "' is not valid: give the bytes per device");
  }
}

TEST_F(ProcessTest, CorrectedEnvironmentIsReadAgain) {
  EXPECT_EXIT(
      {
        setVariables("none", "1MiB");
        int count = 0;
        const bool refused = oregGetDeviceCount(&count) == oregErrorInvalidConfiguration;
        setVariables("5", "1MiB");
        const bool read = oregGetDeviceCount(&count) == oregSuccess && count == 5;
        setVariables("6", "1MiB");  // too late
        exitWith(refused && read && oregGetDeviceCount(&count) == oregSuccess && count == 5);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(ProcessTest, AddressSpaceThatCannotBeReserved) {
  EXPECT_EXIT(
      {
        setVariables("64", "16384GiB");
        void* pointer = nullptr;
        exitWith(oregMalloc(&pointer, 8) == oregErrorInitialization && oregIsInitialized() == 0);
      },
      testing::ExitedWithCode(0), "cannot reserve address space for 64 devices.*OPENREG_MEMORY");
}

TEST_F(ProcessTest, QueriesStartNothing) {
  EXPECT_EXIT(
      {
        int number = 0;
        oregDeviceProp properties{};
        oregPointerAttributes attributes{};
        const bool answered =
            oregGetDeviceCount(&number) == oregSuccess && oregGetDevice(&number) == oregSuccess &&
            oregSetDevice(1) == oregSuccess && oregDriverGetVersion(&number) == oregSuccess &&
            oregGetDeviceProperties(&properties, 1) == oregSuccess &&
            oregDeviceGetStreamPriorityRange(&number, &number) == oregSuccess &&
            oregPointerGetAttributes(&attributes, &number) == oregSuccess &&
            oregFree(nullptr) == oregSuccess;
        const bool started = oregIsInitialized();
        oregStreamQuery(nullptr);
        exitWith(answered && !started && oregIsInitialized() == 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(ProcessTest, HostThatDereferencesADevicePointerFaults) {
  for (const bool write : {false, true}) {
    EXPECT_EXIT(
        {
          std::signal(SIGSEGV, SIG_DFL);  // sanitizers install a handler of their own
          void* pointer = nullptr;
          if (oregMalloc(&pointer, 512) != oregSuccess) std::exit(1);
          auto* bytes = static_cast<volatile char*>(pointer);
          if (write) bytes[0] = 1;
          std::exit(bytes[0]);
        },
        testing::KilledBySignal(SIGSEGV), "");
  }
}

// Runs the check in a forked child.
bool holdsInChild(bool (*check)()) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(ProcessTest, ChildForkedAfterUseCannotUseTheDevice) {
  EXPECT_EXIT(
      {
        static void* pointer;
        static oregStream_t stream;
        static oregEvent_t event;
        char byte = 0;
        const bool prepared = oregMalloc(&pointer, 8) == oregSuccess &&
                              oregMemset(pointer, 3, 8) == oregSuccess &&
                              oregStreamCreateWithPriority(&stream, 0) == oregSuccess &&
                              oregEventCreateWithFlags(&event, 0) == oregSuccess;
        const bool childRefused = holdsInChild([] {
          char here = 0;
          int count = 0;
          void* other = nullptr;
          std::size_t bytes = 0;
          oregPointerAttributes attributes{};
          const auto refused = [](oregError_t code) {
            return code == oregErrorForked &&
                   std::string(oregGetLastErrorMessage()).find("'spawn'") != std::string::npos;
          };
          return oregIsInBadFork() == 1 && oregIsInitialized() == 0 &&
                 oregGetDeviceCount(&count) == oregSuccess && count == 2 &&
                 refused(oregMalloc(&other, 8)) && refused(oregFree(pointer)) &&
                 refused(oregMallocHost(&other, 8)) && refused(oregMemGetInfo(&bytes, &bytes)) &&
                 refused(oregMemcpy(&here, pointer, 1, oregMemcpyDeviceToHost)) &&
                 refused(oregMemset(pointer, 0, 8)) && refused(oregStreamSynchronize(stream)) &&
                 refused(oregStreamQuery(nullptr)) && refused(oregStreamDestroy(stream)) &&
                 refused(oregEventRecord(event, stream)) && refused(oregEventDestroy(event)) &&
                 refused(oregDeviceSynchronize()) && refused(oregKernelBegin(nullptr)) &&
                 refused(oregPointerGetAttributes(&attributes, pointer)) &&
                 holdsInChild([] { return oregIsInBadFork() == 1; });
        });
        const bool parentUnharmed =
            oregIsInBadFork() == 0 &&
            oregMemcpy(&byte, pointer, 1, oregMemcpyDeviceToHost) == oregSuccess && byte == 3 &&
            oregStreamSynchronize(stream) == oregSuccess;
        exitWith(prepared && childRefused && parentUnharmed);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(ProcessTest, ChildForkedBeforeUseCanUseTheDevice) {
  EXPECT_EXIT(
      {
        int count = 0;
        oregGetDeviceCount(&count);  // a query is no use
        const bool works = holdsInChild([] {
          void* pointer = nullptr;
          return oregIsInBadFork() == 0 && oregMalloc(&pointer, 8) == oregSuccess &&
                 oregMemset(pointer, 1, 8) == oregSuccess;
        });
        exitWith(works && oregIsInBadFork() == 0 && oregIsInitialized() == 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(ProcessTest, BusyWorkersDoNotKeepTheProcess) {
  EXPECT_EXIT(
      {
        static const oregStream_t stream = createStream();
        static std::atomic<bool> running;
        static Kernel endless([] {
          running = true;
          running.notify_all();
          for (;;) pause();
        });
        {
          const Occupied occupied(stream);
          endless.launch(stream);
        }
        running.wait(false);
        exitWith(oregStreamQuery(stream) == oregErrorNotReady);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(ProcessTest, VisibleDevicesAreMaskedAndReordered) {
  struct Valid {
    const char* visible;
    std::vector<int> ordinals;
  };
  const Valid cases[] = {{"0", {0}}, {"2", {2}}, {"3,1", {3, 1}}, {"1,0,2,3", {1, 0, 2, 3}}};
  for (const Valid& valid : cases) {
    SCOPED_TRACE(valid.visible);
    EXPECT_EXIT(
        {
          setVariables("4", "1MiB");
          setenv("OPENREG_VISIBLE_DEVICES", valid.visible, 1);
          int count = 0;
          bool right = oregGetDeviceCount(&count) == oregSuccess &&
                       count == static_cast<int>(valid.ordinals.size());
          for (int device = 0; right && device < count; ++device) {
            oregDeviceProp properties{};
            right = oregGetDeviceProperties(&properties, device) == oregSuccess &&
                    properties.ordinal == valid.ordinals[device];
          }
          void* pointer = nullptr;
          exitWith(right && oregSetDevice(count - 1) == oregSuccess &&
                   oregMalloc(&pointer, 8) == oregSuccess &&
                   oregSetDevice(count) == oregErrorInvalidDevice);
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST_F(ProcessTest, NoVisibleDevices) {
  for (const char* visible : {"", "-1"}) {
    EXPECT_EXIT(
        {
          setVariables("4", "1MiB");
          setenv("OPENREG_VISIBLE_DEVICES", visible, 1);
          int count = 77;
          void* pointer = nullptr;
          exitWith(oregGetDeviceCount(&count) == oregSuccess && count == 0 &&
                   oregSetDevice(0) == oregErrorInvalidDevice &&
                   oregMalloc(&pointer, 8) == oregErrorNoDevice &&
                   oregStreamSynchronize(nullptr) == oregErrorNoDevice);
        },
        testing::ExitedWithCode(0), "OPENREG_VISIBLE_DEVICES hides them all");
  }
}

TEST_F(ProcessTest, InvalidVisibleDevices) {
  const auto expectRefused = [](const std::string& visible, const char* text) {
    SCOPED_TRACE(visible);
    EXPECT_EXIT(
        {
          setVariables("4", "1MiB");
          setenv("OPENREG_VISIBLE_DEVICES", visible.c_str(), 1);
          int count = 77;
          exitWith(oregGetDeviceCount(&count) == oregErrorInvalidConfiguration && count == 77);
        },
        testing::ExitedWithCode(0), text);
  };
  for (const char* visible :
       {"4", "a", "0,", ",0", "0,,1", " 0", "0, 1", "0,-1", "1.5", "0;1", "99999999999999999999"}) {
    expectRefused(visible, "is not valid: give the devices to use as a comma-separated list");
  }
  expectRefused("0,1,0", "names device 0 twice");
}

TEST_F(ProcessTest, LaunchModes) {
  const auto ranBy = [](const char* mode) {
    setVariables("2", "1MiB");
    setenv("OPENREG_LAUNCH", mode, 1);
    static std::thread::id runner;
    const auto run = [](void*) {
      runner = std::this_thread::get_id();
      return oregSuccess;
    };
    if (oregLaunch(run, nullptr, nullptr) != oregSuccess) exitWith(false);
    if (oregStreamSynchronize(nullptr) != oregSuccess) exitWith(false);
    return runner;
  };
  EXPECT_EXIT(exitWith(ranBy("inline") == std::this_thread::get_id()), testing::ExitedWithCode(0),
              "");
  EXPECT_EXIT(
      {
        const bool byWorker = ranBy("async") != std::this_thread::get_id();
        oregLaunchMode mode = oregLaunchInline;
        exitWith(byWorker && oregGetLaunchMode(&mode) == oregSuccess && mode == oregLaunchAsync);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("OPENREG_LAUNCH", "sync", 1);
        int count = 0;
        exitWith(oregGetDeviceCount(&count) == oregErrorInvalidConfiguration);
      },
      testing::ExitedWithCode(0), "OPENREG_LAUNCH='sync' is not valid: give 'inline' or 'async'");
}

TEST_F(ProcessTest, ExitDoesNotWaitForQueuedWork) {
  EXPECT_EXIT(
      {
        setVariables("2", "1MiB");
        oregStreamDelay(nullptr, 3'000'000'000);  // most of an hour
        exitWith(true);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
