// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/device_events.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <unistd.h>
#include <vector>

namespace netio::fabric::device_events_test {
namespace {

// Two devices without hardware: bytes written to a pipe become events. The second device cannot be
// opened.
struct FakeVerbs {
    std::array<::ibv_device, 2> devices{};
    std::array<::ibv_device*, 3> list{&devices[0], &devices[1], nullptr};
    ::ibv_context context{};
    int writer = -1;
    int open_count = 0;
    int told_count = 0; // events that are not acknowledged
    bool gone = false;
};
FakeVerbs* fake = nullptr;

const VerbsLibrary library{
    .get_device_list =
        [](int* count) {
            *count = 2;
            return fake->list.data();
        },
    .free_device_list = [](::ibv_device**) {},
    .get_device_name = [](::ibv_device* device) -> const char* {
        return device == &fake->devices[0] ? "mlx5_0" : "mlx5_1";
    },
    .open_device = [](::ibv_device* device) -> ::ibv_context* {
        if (device != &fake->devices[0]) return nullptr;
        ++fake->open_count;
        return &fake->context;
    },
    .close_device =
        [](::ibv_context*) {
            --fake->open_count;
            return 0;
        },
    .get_async_event =
        [](::ibv_context* context, ::ibv_async_event* event) {
            if (fake->gone) {
                errno = EIO;
                return -1;
            }
            if (::read(context->async_fd, event, sizeof *event) != ssize_t{sizeof *event})
                return -1;
            ++fake->told_count;
            return 0;
        },
    .ack_async_event = [](::ibv_async_event*) { --fake->told_count; },
    .event_type_str = [](::ibv_event_type) -> const char* { return "in its words"; },
};

class DeviceEventsOfAFake : public testing::Test {
  protected:
    DeviceEventsOfAFake() {
        fake = &verbs_;
        std::array<int, 2> ends{};
        EXPECT_EQ(::pipe(ends.data()), 0);
        verbs_.context.async_fd = ends[0];
        verbs_.writer = ends[1];
        watch_ = std::make_unique<DeviceEvents>(loop_, library,
                                                [this](const DeviceEvent& event) { take(event); });
    }
    ~DeviceEventsOfAFake() override {
        watch_.reset();
        EXPECT_EQ(verbs_.open_count, 0);
        EXPECT_EQ(verbs_.told_count, 0) << "closing waits for unacknowledged events";
        ::close(verbs_.context.async_fd);
        ::close(verbs_.writer);
    }
    void happens(::ibv_event_type type, int port) const {
        ::ibv_async_event event{};
        event.event_type = type;
        event.element.port_num = port;
        EXPECT_EQ(::write(verbs_.writer, &event, sizeof event), ssize_t{sizeof event});
    }
    void turn_until(std::size_t count) {
        while (events_.size() < count)
            loop_.run_once(TimePoint::max());
    }
    void take(const DeviceEvent& event) {
        events_.push_back(event);
        if (destroy_) watch_.reset();
    }

    FakeVerbs verbs_;
    EventLoop loop_;
    std::vector<DeviceEvent> events_;
    bool destroy_ = false;
    std::unique_ptr<DeviceEvents> watch_;
};

TEST_F(DeviceEventsOfAFake, ReportPortsAndTheirNumbers) {
    EXPECT_EQ(watch_->device_count(), 1U) << "the device that could be opened";
    happens(IBV_EVENT_PORT_ERR, 2);
    happens(IBV_EVENT_COMM_EST, 0); // event of a queue, which is ignored
    happens(IBV_EVENT_PORT_ACTIVE, 2);
    happens(IBV_EVENT_DEVICE_FATAL, 0);
    turn_until(3);
    EXPECT_EQ(events_[0].kind, DeviceEvent::Kind::port_down);
    EXPECT_EQ(events_[0].device, "mlx5_0");
    EXPECT_EQ(events_[0].port, 2U);
    EXPECT_EQ(events_[0].what, "in its words");
    EXPECT_EQ(events_[1].kind, DeviceEvent::Kind::port_up);
    EXPECT_EQ(events_[2].kind, DeviceEvent::Kind::device_failed);
    EXPECT_EQ(events_[2].port, 0U);
}

TEST_F(DeviceEventsOfAFake, MayBeDestroyedInTheCallback) {
    destroy_ = true;
    happens(IBV_EVENT_PORT_ERR, 1);
    happens(IBV_EVENT_PORT_ACTIVE, 1);
    turn_until(1);
    loop_.run_once();
    EXPECT_EQ(events_.size(), 1U);
}

TEST_F(DeviceEventsOfAFake, EndWithTheirDeviceWithoutASpinningLoop) {
    verbs_.gone = true;
    happens(IBV_EVENT_PORT_ERR, 1); // the descriptor stays readable
    loop_.run_once(TimePoint::max());
    const std::uint64_t turns = loop_.turns().count();
    for (int i = 0; i < 10; ++i)
        loop_.run_once();
    EXPECT_EQ(loop_.turns().count(), turns);
    EXPECT_TRUE(events_.empty());
}

// With and without devices or the library.
TEST(DeviceWatch, WorksOnEveryMachine) {
    EventLoop loop;
    const DeviceWatch watch{loop};
    loop.run_once();
}

} // namespace
} // namespace netio::fabric::device_events_test
