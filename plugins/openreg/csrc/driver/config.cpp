#include "config.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "error.h"

namespace openreg {

constinit std::mutex onceMutex;

namespace {

constinit std::atomic<const Config*> current{nullptr};  // leaked: needed until the process ends

constexpr std::size_t kMaxMemory = std::size_t{16} << 40;  // times 64 devices still fits in 64 bits

struct Number {
  std::uint64_t value;
  std::string_view rest;
};

std::optional<Number> parseNumber(const char* text) {
  const char* end = text + std::strlen(text);
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text, end, value);
  if (error != std::errc{}) return std::nullopt;
  return Number{value, {rest, end}};
}

std::optional<int> shiftOf(std::string_view suffix) {
  if (suffix.empty()) return 0;
  if (suffix == "K" || suffix == "KiB") return 10;
  if (suffix == "M" || suffix == "MiB") return 20;
  if (suffix == "G" || suffix == "GiB") return 30;
  return std::nullopt;
}

int readDeviceCount() {
  const char* text = std::getenv("OPENREG_DEVICE_COUNT");
  if (text == nullptr) return 2;
  const auto number = parseNumber(text);
  if (!number || !number->rest.empty() || number->value < 1 || number->value > 64) {
    fail(oregErrorInvalidConfiguration,
         "OPENREG_DEVICE_COUNT='%.64s' is not valid: give an integer from 1 to 64", text);
  }
  return static_cast<int>(number->value);
}

std::size_t readMemory() {
  const char* text = std::getenv("OPENREG_MEMORY");
  if (text == nullptr) return std::size_t{8} << 30;
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto number = parseNumber(text);
  const auto shift = number ? shiftOf(number->rest) : std::nullopt;
  if (!shift || number->value > (kMaxMemory >> *shift) || (number->value << *shift) < page) {
    fail(oregErrorInvalidConfiguration,
         "OPENREG_MEMORY='%.64s' is not valid: give the bytes per device as an integer, with an "
         "optional suffix K, M, G, KiB, MiB or GiB (powers of 1024), from %zu bytes to 16384GiB",
         text, page);
  }
  return (number->value << *shift) / page * page;
}

}  // namespace

const Config& config() {
  const Config* known = current.load(std::memory_order_acquire);
  if (known == nullptr) [[unlikely]] {
    const std::lock_guard lock(onceMutex);
    known = current.load(std::memory_order_relaxed);
    if (known == nullptr) {
      known = new Config{readDeviceCount(), readMemory()};
      current.store(known, std::memory_order_release);
    }
  }
  return *known;
}

}  // namespace openreg
