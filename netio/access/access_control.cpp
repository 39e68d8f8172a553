// SPDX-License-Identifier: Apache-2.0
#include "netio/access/access_control.hpp"

namespace netio::access::inline v0_2 {

AccessControl::AccessControl(const Options& options, KeySource& source, const Secret& boot)
    : least_{options.least}, file_{options.key_file, source}, gate_{boot,
                                                                    {.least = options.least,
                                                                     .most = options.most,
                                                                     .lacks_aes = options.lacks_aes,
                                                                     .dialled_as =
                                                                         options.dialled_as}},
      attendance_{options.links_per_host} {
    file_.load();
    gate_.use(file_.ring());
}

Gate::Verdict AccessControl::judge(const Gate::Request& request, TimePoint now,
                                   Attendance::Place& place) {
    Gate::Verdict verdict = gate_.judge(request, now);
    if (!verdict.admission) return verdict;
    const auto entry = attendance_.enter(verdict.admission->id(), verdict.admission->rights(),
                                         request.source, place);
    if (entry != Attendance::Entry::entered) {
        gate_.turn_away();
        verdict.outcome = Gate::Verdict::Outcome::busy;
        verdict.shortage = entry == Attendance::Entry::key_has_enough ? Shortage::links_of_key
                                                                      : Shortage::links_of_host;
        verdict.admission.reset();
    }
    return verdict;
}

std::optional<AccessControl::News> AccessControl::look() {
    switch (file_.refresh()) {
    case KeyFile::Refreshed::unchanged:
        return std::nullopt;
    case KeyFile::Refreshed::broken:
        return News{.revoked = {}, .problem = file_.problem()};
    case KeyFile::Refreshed::changed:
        break;
    }
    gate_.use(file_.ring());
    return News{.revoked = file_.revoked(), .problem = {}};
}

} // namespace netio::access::inline v0_2
