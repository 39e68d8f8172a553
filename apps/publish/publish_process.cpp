// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publish_process.hpp"

#include "apps/common/end_signals.hpp"
#include "apps/common/standard_output.hpp"
#include "apps/publish/loop_parts.hpp"
#include "apps/publish/outcome.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace apps {
namespace {

// What one of the loops has. All messages that were asked for are divided as the fids are.
PublishLoop::Options options_of(const PublishConfig& config, const PublishArguments& arguments,
                                std::size_t loop) {
    PublishLoop::Options options{.loop = config.loop, .fabric = config.fabric, .publishers = {}};
    for (const PublisherConfig& publisher : config.publishers)
        options.publishers.push_back(divided(publisher, config.loops).at(loop));
    if (arguments.messages) {
        const std::uint64_t messages = *arguments.messages;
        options.messages = messages / config.loops + (loop < messages % config.loops ? 1 : 0);
    }
    return options;
}

} // namespace

PublishProcess::PublishProcess(const PublishConfig& config, const PublishArguments& arguments)
    : config_{config}, arguments_{arguments}, first_options_{options_of(config, arguments, 0)},
      first_{first_options_, arguments, [this] { ended(first_.has_failed()); }},
      devices_{first_.loop()}, signals_{first_.loop(), end_signals(), [this](int) { interrupt(); }},
      other_sums_(config.loops - 1), running_{config.loops} {
    first_.open();
    const bool shown = live_form(arguments.json, arguments.progress) != LiveDisplay::Form::none;
    for (std::size_t i = 1; i < config.loops; ++i) {
        LoopThread::Events events{
            .on_sums = {}, .on_ended = [this, i] { ended(others_.at(i - 1)->has_failed()); }};
        if (shown) {
            events.on_sums = [this, i](const LiveDisplay::Sums& sums) {
                other_sums_.at(i - 1) = sums;
            };
        }
        others_.push_back(std::make_unique<LoopThread>(options_of(config, arguments, i), arguments,
                                                       first_.loop(), std::move(events)));
    }
}

ExitStatus PublishProcess::run() {
    {
        const LiveDisplay display{first_.loop(), live_form(arguments_.json, arguments_.progress),
                                  [this] { return sums(); }};
        first_.start();
        for (const auto& other : others_)
            other->start();
        first_.loop().run();
    }
    for (const auto& other : others_)
        other->stop();
    for (const auto& other : others_)
        other->join();
    const std::vector<PublishReport> all = reports();
    print_report(arguments_.json ? to_json(all) + "\n" : to_text(all));
    return outcome(all, failed_);
}

// The second one does not wait for subscribers.
void PublishProcess::interrupt() {
    if (interrupted_) return first_.loop().stop();
    interrupted_ = true;
    end_all("interrupted");
}

void PublishProcess::end_all(std::string_view why) {
    first_.end(why);
    for (const auto& other : others_)
        other->end(why);
}

// Half a publisher is none: where one loop fails, the others end as well.
void PublishProcess::ended(bool failed) {
    if (failed && !failed_ && running_ > 1) {
        spdlog::error("a loop has failed; the others end as well");
        end_all("failed");
    }
    failed_ = failed_ || failed;
    if (--running_ == 0) first_.loop().stop();
}

LiveDisplay::Sums PublishProcess::sums() const {
    LiveDisplay::Sums sums = first_.sums();
    for (const LiveDisplay::Sums& other : other_sums_) {
        sums.messages += other.messages;
        sums.bytes += other.bytes;
    }
    return sums;
}

// One for each publisher, whatever the loops.
std::vector<PublishReport> PublishProcess::reports() const {
    std::vector<std::vector<PublishReport>> of_loops{first_.reports()};
    for (const auto& other : others_)
        of_loops.push_back(other->reports());
    if (of_loops.size() == 1) return of_loops.front();
    std::vector<PublishReport> sums;
    for (std::size_t i = 0; i < config_.publishers.size(); ++i) {
        std::vector<PublishReport> parts;
        for (const auto& reports : of_loops)
            parts.push_back(reports.at(i));
        sums.push_back(sum_of(parts, config_.publishers[i].name));
    }
    return sums;
}

} // namespace apps
