// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stand-in for the library that ATLAS FELIX has called netio for years: its header, its namespace
// and classes named in its style. These few are enough to detect a name clash.

#include <cstddef>
#include <cstdint>
#include <string>

namespace netio {

using tag = std::uint64_t;

class endpoint {
  public:
    endpoint(std::string address, unsigned short port);
    std::string address() const;
    unsigned short port() const;

  private:
    std::string address_;
    unsigned short port_;
};

class event_loop {
  public:
    void run();
    void stop();
    int turns = 0;
};

class context {
  public:
    explicit context(const std::string& backend);
    event_loop* loop();

  private:
    event_loop loop_;
};

class message {
  public:
    std::size_t size() const;
};

class buffered_send_socket {
  public:
    explicit buffered_send_socket(context* owner);
    void connect(const endpoint& remote);
    bool is_open() const;

  private:
    context* owner_;
    bool open_ = false;
};

class publish_socket {
  public:
    publish_socket(context* owner, unsigned short port);
    void publish(tag fid, const message& content);
    std::size_t published = 0;
};

} // namespace netio
