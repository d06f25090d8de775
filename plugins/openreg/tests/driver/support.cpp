#include "support.h"

#include <chrono>

testing::AssertionResult succeeds(const char* expression, oregError_t result) {
  if (result == oregSuccess) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << expression << ": " << oregGetErrorName(result) << ": " << oregGetLastErrorMessage();
}

testing::AssertionResult failsWith(const char*, const char*, const char* expression,
                                   oregError_t code, const std::string& text, oregError_t result) {
  const oregError_t last = oregGetLastError();
  const std::string message = oregGetLastErrorMessage();
  if (result == code && last == code && message.find(text) != std::string::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << expression << "\n  should fail with " << oregGetErrorName(code) << " and '" << text
         << "'\n  returned " << oregGetErrorName(result) << ", last error "
         << oregGetErrorName(last) << ": " << message;
}

void DriverTest::SetUp() {
  EXPECT_OK(oregSetDevice(0));
  oregGetLastError();
}

void DriverTest::TearDown() { EXPECT_OK(oregSetDevice(0)); }

void* allocate(std::size_t bytes) {
  void* pointer = nullptr;
  EXPECT_OK(oregMalloc(&pointer, bytes));
  return pointer;
}

oregStream_t createStream(int priority) {
  oregStream_t stream = nullptr;
  EXPECT_OK(oregStreamCreateWithPriority(&stream, priority));
  return stream;
}

oregEvent_t createEvent(unsigned flags) {
  oregEvent_t event = nullptr;
  EXPECT_OK(oregEventCreateWithFlags(&event, flags));
  return event;
}

unsigned char* kernelAddress(void* pointer) {
  std::ptrdiff_t offset = 0;
  EXPECT_OK(oregGetKernelOffset(&offset));
  return static_cast<unsigned char*>(pointer) + offset;
}

Occupied::Occupied(oregStream_t stream)
    : thread_([state = state_, stream] {
        EXPECT_OK(oregLaunch(&run, new std::shared_ptr<State>(state), stream));
      }) {
  state_->started.wait(false);
}

void Occupied::release() {
  state_->released = true;
  state_->released.notify_all();
  if (thread_.joinable()) thread_.join();
}

oregError_t Occupied::run(void* argument) {
  const std::unique_ptr<std::shared_ptr<State>> owned(
      static_cast<std::shared_ptr<State>*>(argument));
  State& state = **owned;
  state.started = true;
  state.started.notify_all();
  state.released.wait(false);
  return oregSuccess;
}

void giveTimeToGoWrong() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }
