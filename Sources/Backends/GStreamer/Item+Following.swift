import CGStreamer
import EventLoop

// What follows without a gap.
extension Item {
    struct Crossing {
        /// When the last sample of what sounds still will be heard, in running time.
        let end: GstClockTime
        /// What that is in the item's time, in seconds.
        let place: Double
        /// Nothing follows.
        let isEnd: Bool
    }

    /// How long before its end what follows is made ready, in seconds: more than a disk needs to wake up.
    private static let lead = 6.0

    /// What flows already counts as heard: before it is asked for something that concerns the item.
    func finishCrossing() {
        guard let done = crossing else { return }
        crossing = nil
        crossed.disarm()
        if done.isEnd { return onEvent?(.ended) ?? () }
        onEvent?(.advanced)
        onEvent?(.tags(chain.tags))
        lookAhead()
    }

    /// Makes ready what follows, once the end is near and nothing stands against it.
    func lookAhead() {
        ahead.disarm()
        guard let following, source.isLocal, loopsLeft == 0, rate == 1 else { return succession.forget() }
        guard !isAlone, wantsPlaying, isReady, crossing == nil, seeking == nil, next == nil, succession.waiting == nil,
            let duration
        else { return }
        let rest = duration - position - Item.lead
        guard rest <= 0 else { return ahead.arm(after: rest + 0.05) }
        guard let source = try? MediaSource(uri: following), source.isLocal, source.list == nil,
            (try? succession.prepare(source)) != nil
        else {
            isAlone = true
            return
        }
    }

    func sourceHasEnded() {
        // An end from before the seek under way is not the end.
        guard seeking == nil, next == nil, crossing == nil else { return }
        let end = volume.runningHead ?? pipeline.runningTime ?? 0
        let place = volume.head.map { Double($0) / 1e9 } ?? duration ?? 0
        if let next = succession.replace(chain, at: end) {
            chain = next
            following = nil
            loopsLeft = loops
            (knownDuration, missing) = (pipeline.duration, nil)
            volume.carryOver()
            duck.carryOver()
            meter.clear()
            crossing = Crossing(end: end, place: place, isEnd: false)
        } else {
            crossing = Crossing(end: end, place: place, isEnd: true)
        }
        lookAtCrossing()
    }

    func lookAtCrossing() {
        crossed.disarm()
        guard let crossing, wantsPlaying else { return }
        let now = pipeline.runningTime ?? 0
        if now >= crossing.end { finishCrossing() } else { crossed.arm(after: Double(crossing.end - now) / 1e9) }
    }
}
