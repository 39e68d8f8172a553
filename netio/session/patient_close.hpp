// SPDX-License-Identifier: Apache-2.0
#pragma once

// The close() of a socket that has still something to hand to its session, which can be closed only
// behind that. Until then the session's time-outs count here: SessionOptions::close_timeout since
// the last progress, and close_limit in all; the session has what is then left of it.

#include "netio/session/patient_wait.hpp"
#include "netio/session/session_options.hpp"

namespace netio::inline v0_2 {

class Session;

class PatientClose {
  public:
    PatientClose(EventLoop& loop, const SessionOptions& options);

    // close() was called. The session, which is open, ends unconfirmed if a time-out comes before
    // finish(). Twice is legal.
    void begin(Session& session);
    bool has_begun() const noexcept { return session_ != nullptr; }
    // Something has left, or the peer has taken something.
    void on_progress() { wait_.on_progress(); }
    // All has left: closes the session. Twice is legal.
    void finish();
    // The session is gone.
    void forget() noexcept;

  private:
    void on_overdue();

    Session* session_ = nullptr; // once it has begun
    PatientWait wait_;           // until it is finished
};

} // namespace netio::inline v0_2
