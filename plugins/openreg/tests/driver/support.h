// What the driver's tests share.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "openreg.h"

// The call succeeds; otherwise shows the driver's message.
#define EXPECT_OK(call) EXPECT_PRED_FORMAT1(succeeds, call)
testing::AssertionResult succeeds(const char* expression, oregError_t result);

// The call fails with this code, which becomes the thread's last error, and a message that contains
// the text.
#define EXPECT_ERROR(code, text, call) EXPECT_PRED_FORMAT3(failsWith, code, text, call)
testing::AssertionResult failsWith(const char*, const char*, const char* expression,
                                   oregError_t code, const std::string& text, oregError_t result);

// Starts with device 0 current and no error pending.
class DriverTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
};

void* allocate(std::size_t bytes);
oregStream_t createStream(int priority = 0);
oregEvent_t createEvent(unsigned flags = oregEventDefault);

// Where kernels see the byte that the device pointer names.
unsigned char* kernelAddress(void* pointer);

// A kernel from any callable that returns oregError_t or nothing. It must live until it has run.
class Kernel {
 public:
  template <typename Body>
  explicit Kernel(Body body)
      : body_([body = std::move(body)]() mutable {
          if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
            body();
            return oregSuccess;
          } else {
            return body();
          }
        }) {}
  oregError_t launch(oregStream_t stream) { return oregLaunch(&run, this, stream); }

 private:
  static oregError_t run(void* self) { return static_cast<Kernel*>(self)->body_(); }
  std::function<oregError_t()> body_;
};

// Keeps a stream busy, with a kernel that another thread runs, until release().
class Occupied {
 public:
  explicit Occupied(oregStream_t stream);
  ~Occupied() { release(); }
  void release();

 private:
  // Shared with the kernel, which a worker may still be leaving when this object is gone.
  struct State {
    std::atomic<bool> started{false};
    std::atomic<bool> released{false};
  };
  static oregError_t run(void* argument);
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

// Gives a call of another thread, which should be waiting now, the time to return if it does not.
void giveTimeToGoWrong();
