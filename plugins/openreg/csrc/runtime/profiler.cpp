// The device's part of torch.profiler: one event per kernel, copy and fill, with the times at which
// the device ran it, linked to the operator that submitted it.
//
// PyTorch's profiler, Kineto, takes devices out of tree as "child profilers". A session of ours
// collects the driver's activities between start() and stop(), and hands them over in
// processTrace().
#include "runtime/profiler.h"

// As PyTorch is built; the fmt library is not exported by it.
#define USE_KINETO
#define FMT_HEADER_ONLY
#include <c10/core/Device.h>
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/stream.h"

namespace openreg {
namespace {

using libkineto::ActivityType;

const std::set<ActivityType>& activity_types() {
  // Kineto's names for what any accelerator does; "GPU" is history.
  static const std::set<ActivityType> types{ActivityType::CONCURRENT_KERNEL,
                                            ActivityType::GPU_MEMCPY, ActivityType::GPU_MEMSET};
  return types;
}

ActivityType type_of(const oregActivity& activity) {
  switch (activity.kind) {
    case oregActivityMemcpy:
      return ActivityType::GPU_MEMCPY;
    case oregActivityMemset:
      return ActivityType::GPU_MEMSET;
    default:
      return ActivityType::CONCURRENT_KERNEL;
  }
}

const char* copy_name(oregMemcpyKind kind) {
  switch (kind) {
    case oregMemcpyHostToDevice:
      return "Memcpy HtoD";
    case oregMemcpyDeviceToHost:
      return "Memcpy DtoH";
    case oregMemcpyDeviceToDevice:
      return "Memcpy DtoD";
    default:
      return "Memcpy HtoH";
  }
}

// A kernel has the name of the operator that it implements.
std::string name_of(const oregActivity& activity, const libkineto::ITraceActivity* op) {
  switch (activity.kind) {
    case oregActivityMemcpy:
      return copy_name(activity.copyKind);
    case oregActivityMemset:
      return "Memset";
    case oregActivityDelay:
      return "Delay";
    default:
      return op != nullptr ? op->name() : "kernel";
  }
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  ~Session() override { unsubscribe(); }

  void start() override {
    if (oregActivitySubscribe(&Session::record, this) == oregSuccess) {
      is_subscribed_ = true;
    } else {
      oregGetLastError();
      errors_.emplace_back(oregGetLastErrorMessage());
    }
    status_ = libkineto::TraceStatus::RECORDING;
  }

  void stop() override {
    unsubscribe();
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  std::vector<std::string> errors() override { return errors_; }

  void pushCorrelationId(uint64_t id) override { oregActivityPushCorrelation(id); }
  void popCorrelationId() override {
    // The profiler may have been started inside of the operator that ends now.
    if (oregActivityPopCorrelation() != oregSuccess) oregGetLastError();
  }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, 0, INT64_MAX);
  }

  void processTrace(libkineto::ActivityLogger& logger,
                    libkineto::getLinkedActivityCallback linked_activity, int64_t start,
                    int64_t end) override {
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->span = libkineto::TraceSpan(start, end, c10::get_privateuse1_backend());
    // Everything that was submitted between start() and stop(), also if it ended later.
    for (const oregActivity& activity : activities_) {
      const auto device = static_cast<c10::DeviceIndex>(activity.device);
      const c10::StreamId stream = stream_id_of(device, activity.stream);
      lanes_.emplace(device, stream);
      const auto* op = linked_activity(static_cast<int32_t>(activity.correlation));
      buffer_->emplace_activity(buffer_->span, type_of(activity), name_of(activity, op));
      libkineto::GenericTraceActivity& event = *buffer_->activities.back();
      event.startTime = static_cast<int64_t>(activity.startNanoseconds);
      event.endTime = static_cast<int64_t>(activity.endNanoseconds);
      event.id = static_cast<int32_t>(activity.correlation);
      event.device = device;
      event.resource = static_cast<int32_t>(stream);
      event.linked = op;
      event.addMetadata("device", activity.device);
      event.addMetadata("stream", stream);
      event.addMetadata("correlation", activity.correlation);
      if (activity.bytes > 0) event.addMetadata("bytes", activity.bytes);
      if (op != nullptr) {
        event.flow.id = static_cast<uint32_t>(activity.correlation);
        event.flow.type = libkineto::kLinkAsyncCpuGpu;
        event.flow.start = false;
      }
      event.log(logger);
    }
  }

  // Kineto labels every process "GPU 0", "GPU 1", ... itself, so that the streams carry the name.
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }

  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    std::vector<libkineto::ResourceInfo> infos;
    for (const auto& [device, stream] : lanes_) {
      infos.push_back(
          {stream, stream, device, device_at(device).str() + " stream " + std::to_string(stream)});
    }
    return infos;
  }

  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::move(buffer_);
  }

 private:
  static void record(const oregActivity* activity, void* self) {
    auto* session = static_cast<Session*>(self);
    const std::lock_guard<std::mutex> lock(session->mutex_);
    session->activities_.push_back(*activity);
  }

  void unsubscribe() {
    if (std::exchange(is_subscribed_, false)) oregActivityUnsubscribe();
  }

  bool is_subscribed_ = false;
  std::mutex mutex_;
  std::vector<oregActivity> activities_;
  std::vector<std::string> errors_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
  std::set<std::pair<c10::DeviceIndex, c10::StreamId>> lanes_;  // on which something has run
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return activity_types(); }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types, const libkineto::Config&) override {
    // Kineto asks every device profiler, also when the program wants the CPU's events only.
    for (const ActivityType type : activity_types()) {
      if (types.contains(type)) return std::make_unique<Session>();
    }
    return nullptr;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& types,
      const libkineto::Config& config) override {
    return configure(types, config);
  }

 private:
  const std::string name_ = "openreg";
};

}  // namespace

void register_profiler() {
  torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().registerFactory(
      [] { return std::make_unique<Profiler>(); });
}

}  // namespace openreg
