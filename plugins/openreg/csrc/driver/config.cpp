#include "config.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
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

std::optional<Number> parseNumber(std::string_view text) {
  const char* end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, value);
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

std::vector<int> readVisibleDevices(int count) {
  std::vector<int> ordinals(count);
  std::iota(ordinals.begin(), ordinals.end(), 0);
  const char* text = std::getenv("OPENREG_VISIBLE_DEVICES");
  if (text == nullptr) return ordinals;
  ordinals.clear();
  std::string_view rest = text;
  if (rest.empty() || rest == "-1") return ordinals;  // as CUDA_VISIBLE_DEVICES: none
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const auto number = parseNumber(rest.substr(0, comma));
    if (!number || !number->rest.empty() || number->value >= static_cast<std::uint64_t>(count)) {
      fail(oregErrorInvalidConfiguration,
           "OPENREG_VISIBLE_DEVICES='%.64s' is not valid: give the devices to use as a comma-"
           "separated list of integers from 0 to %d, without spaces, or nothing for none",
           text, count - 1);
    }
    const int ordinal = static_cast<int>(number->value);
    if (std::find(ordinals.begin(), ordinals.end(), ordinal) != ordinals.end()) {
      fail(oregErrorInvalidConfiguration,
           "OPENREG_VISIBLE_DEVICES='%.64s' is not valid: it names device %d twice", text, ordinal);
    }
    ordinals.push_back(ordinal);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  return ordinals;
}

oregLaunchMode readLaunchMode() {
  const char* text = std::getenv("OPENREG_LAUNCH");
  if (text == nullptr || std::strcmp(text, "inline") == 0) return oregLaunchInline;
  if (std::strcmp(text, "async") == 0) return oregLaunchAsync;
  fail(oregErrorInvalidConfiguration,
       "OPENREG_LAUNCH='%.64s' is not valid: give 'inline' or 'async'", text);
}

}  // namespace

const Config& config() {
  const Config* known = current.load(std::memory_order_acquire);
  if (known == nullptr) [[unlikely]] {
    const std::lock_guard lock(onceMutex);
    known = current.load(std::memory_order_relaxed);
    if (known == nullptr) {
      known = new Config{readVisibleDevices(readDeviceCount()), readMemory(), readLaunchMode()};
      current.store(known, std::memory_order_release);
    }
  }
  return *known;
}

}  // namespace openreg
