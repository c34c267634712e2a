import CGStreamer
import EventLoop
import GStreamerBase

// The next item, which follows without a gap.
extension Item {
    /// How long before the end the next item is prepared, in seconds: longer than a disk needs to wake up.
    private static let lead = 6.0

    /// The next item counts as heard from now on. Called before a request that concerns the item.
    func finishCrossing() {
        guard playhead.crossing != nil else { return }
        crossed.disarm()
        handle(.crossed)
    }

    /// Prepares the next item if the end is near and it can follow without a gap.
    func lookAhead() {
        ahead.disarm()
        guard let following, !source.traits.needsBuffering, loopsLeft == 0, rate == 1 else {
            return succession.forget()
        }
        guard !nextNeedsGap, playhead.wantsPlaying, playhead.isSteady, succession.waiting == nil, let duration
        else { return }
        let rest = duration - position - Item.lead
        guard rest <= 0 else { return ahead.arm(after: rest + 0.05) }
        locateNext(following)
        guard let place = placeOfNext, !place.isEmpty else { return }
        guard let source = try? MediaSource(uri: following, readAt: place), !source.traits.needsBuffering,
            source.list == nil,
            (try? succession.prepare(source)) != nil
        else {
            nextNeedsGap = true
            return
        }
    }

    func sourceHasEnded() {
        // An end that was reported before the current seek does not count.
        guard playhead.isSteady else { return }
        let end = volume.runningHead ?? pipeline.runningTime ?? 0
        let place = volume.head.map(Times.seconds) ?? duration ?? 0
        let next = succession.replace(chain, at: end)
        if let next {
            chain = next
            following = nil
            (knownDuration, missing) = (pipeline.duration, nil)
            tail.carryOver()
        }
        handle(.sourceEnded(Playhead.Crossing(end: end, place: place, isEnd: next == nil)))
        lookAtCrossing()
    }

    func lookAtCrossing() {
        crossed.disarm()
        guard let crossing = playhead.crossing, playhead.wantsPlaying else { return }
        let now = pipeline.runningTime ?? 0
        if now >= crossing.end { finishCrossing() } else { crossed.arm(after: Times.seconds(crossing.end - now)) }
    }
}
