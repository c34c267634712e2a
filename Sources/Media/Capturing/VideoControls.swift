package import PluginAPI

/// A control of a device of Video4Linux, as its driver describes it (VIDIOC_QUERY_EXT_CTRL).
package struct VideoControl: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case integer, boolean, button
        /// The places that can be chosen.
        case menu(Set<Int64>)
        /// What the places stand for.
        case integerMenu([Int64: Int64])
    }

    package let id: UInt32
    package let kind: Kind
    package let range: ClosedRange<Int64>
    package let step: Int64
    package var value: Int64

    package init(id: UInt32, kind: Kind, range: ClosedRange<Int64>, step: Int64, value: Int64) {
        (self.id, self.kind, self.range, self.step, self.value) = (id, kind, range, step, value)
    }

    fileprivate func canBe(_ value: Int64) -> Bool {
        switch kind {
        case .menu(let places): places.contains(value)
        case .integerMenu(let items): items[value] != nil
        case .integer, .boolean: range.contains(value)
        case .button: false
        }
    }

    /// The possible value that is nearest.
    fileprivate func nearest(_ value: Double) -> Int64 {
        let (low, step) = (Double(range.lowerBound), Double(max(step, 1)))
        let steps = ((min(max(value, low), Double(range.upperBound)) - low) / step).rounded(.toNearestOrAwayFromZero)
        let found = low + steps * step
        return Int64(found > Double(range.upperBound) ? found - step : found)
    }
}

/// A value that a control of Video4Linux gets.
package struct VideoWrite: Sendable, Hashable {
    package let id: UInt32
    package let value: Int64

    package init(_ id: UInt32, _ value: Int64) { (self.id, self.value) = (id, value) }
}

/// The controls of a camera of Video4Linux, by the words of AVCaptureDevice.
package struct VideoControls: Sendable, Hashable {
    /// The numbers of `linux/v4l2-controls.h`.
    package enum ID {
        package static let autoWhiteBalance: UInt32 = 0x0098_090c
        package static let doWhiteBalance: UInt32 = 0x0098_090d
        package static let whiteBalanceTemperature: UInt32 = 0x0098_091a
        package static let exposureAuto: UInt32 = 0x009a_0901
        package static let exposureAbsolute: UInt32 = 0x009a_0902
        package static let focusAbsolute: UInt32 = 0x009a_090a
        package static let focusAuto: UInt32 = 0x009a_090c
        package static let autoExposureBias: UInt32 = 0x009a_0913
        package static let imageStabilization: UInt32 = 0x009a_0916
        package static let autoFocusStart: UInt32 = 0x009a_091c
        package static let flashMode: UInt32 = 0x009c_0901
        package static let torchIntensity: UInt32 = 0x009c_0907

        /// Those that a camera is asked for.
        package static let all = [
            autoWhiteBalance, doWhiteBalance, whiteBalanceTemperature, exposureAuto, exposureAbsolute, focusAbsolute,
            focusAuto, autoExposureBias, imageStabilization, autoFocusStart, flashMode, torchIntensity,
        ]
    }

    private let all: [UInt32: VideoControl]

    package init(_ controls: [VideoControl] = []) {
        all = Dictionary(controls.map { ($0.id, $0) }) { first, _ in first }
    }

    // MARK: Words

    private enum Step {
        /// Needs a control that can have this value.
        case set(UInt32, Int64)
        /// Needs a button.
        case press(UInt32)
        /// It stays as it is now, also if the driver forgets it when something else is set before.
        case keep(UInt32)
    }

    /// How a word is set. Of rows with the same word, the first one that the camera has is used.
    private static let words: [(control: CaptureControl, word: String, steps: [Step])] = [
        (.focus, "locked", [.set(ID.focusAuto, 0), .keep(ID.focusAbsolute)]),
        (.focus, "auto", [.press(ID.autoFocusStart)]),
        (.focus, "continuous", [.set(ID.focusAuto, 1)]),
        (.exposure, "locked", [.set(ID.exposureAuto, 1), .keep(ID.exposureAbsolute)]),
        // V4L2_EXPOSURE_APERTURE_PRIORITY: the camera chooses the time, which webcams call so. Then V4L2_EXPOSURE_AUTO.
        (.exposure, "continuous", [.set(ID.exposureAuto, 3)]),
        (.exposure, "continuous", [.set(ID.exposureAuto, 0)]),
        (.whiteBalance, "locked", [.set(ID.autoWhiteBalance, 0), .keep(ID.whiteBalanceTemperature)]),
        (.whiteBalance, "auto", [.press(ID.doWhiteBalance)]),
        (.whiteBalance, "continuous", [.set(ID.autoWhiteBalance, 1)]),
        (.stabilization, "off", [.set(ID.imageStabilization, 0)]),
        (.stabilization, "standard", [.set(ID.imageStabilization, 1)]),
    ]

    private func has(_ step: Step) -> Bool {
        switch step {
        case .set(let id, let value): all[id]?.canBe(value) == true
        case .press(let id): all[id]?.kind == .button
        case .keep: true
        }
    }

    private func isTrue(_ step: Step) -> Bool? {
        switch step {
        case .set(let id, let value): all[id].map { $0.value == value }
        case .press: false
        case .keep: nil
        }
    }

    // MARK: Numbers

    /// V4L2_FLASH_LED_MODE_NONE, V4L2_FLASH_LED_MODE_TORCH.
    private static let (lightOff, lightOn): (Int64, Int64) = (0, 2)

    /// How a number is set: by the value of a control, in other units.
    private static let numbers: [(control: CaptureControl, id: UInt32, before: VideoWrite?)] = [
        (.lensPosition, ID.focusAbsolute, VideoWrite(ID.focusAuto, 0)),
        (.exposureDuration, ID.exposureAbsolute, VideoWrite(ID.exposureAuto, 1)),
        (.exposureBias, ID.autoExposureBias, nil),
        (.temperature, ID.whiteBalanceTemperature, VideoWrite(ID.autoWhiteBalance, 0)),
    ]

    /// In the unit of the control, of a value of the driver.
    private func number(_ value: Int64, of control: CaptureControl, _ video: VideoControl) -> Double {
        switch control {
        case .lensPosition:
            // The driver's larger values are nearer.
            let length = Double(video.range.upperBound - video.range.lowerBound)
            return length > 0 ? 1 - Double(value - video.range.lowerBound) / length : 0
        case .exposureDuration: return Double(value) / 10_000
        case .exposureBias:
            if case .integerMenu(let items) = video.kind { return Double(items[value] ?? 0) / 1_000 }
            return Double(value) / 1_000
        case _: return Double(value)
        }
    }

    private func value(_ number: Double, of control: CaptureControl, _ video: VideoControl) -> Int64 {
        switch control {
        case .lensPosition:
            let length = Double(video.range.upperBound - video.range.lowerBound)
            return video.nearest(Double(video.range.lowerBound) + (1 - number) * length)
        case .exposureDuration: return video.nearest(number * 10_000)
        case .exposureBias:
            guard case .integerMenu(let items) = video.kind else { return video.nearest(number * 1_000) }
            let far = { (item: Int64) in abs(Double(item) - number * 1_000) }
            return items.min { (far($0.value), $0.key) < (far($1.value), $1.key) }?.key ?? video.value
        case _: return video.nearest(number)
        }
    }

    private func range(of control: CaptureControl, _ video: VideoControl) -> ClosedRange<Double> {
        var ends = [video.range.lowerBound, video.range.upperBound].map { number($0, of: control, video) }
        if case .integerMenu(let items) = video.kind { ends = items.keys.map { number($0, of: control, video) } }
        return (ends.min() ?? 0)...(ends.max() ?? 0)
    }

    private func video(_ id: UInt32) -> VideoControl? {
        guard let video = all[id] else { return nil }
        switch video.kind {
        case .integer: return video.range.lowerBound < video.range.upperBound ? video : nil
        case .integerMenu(let items): return items.count > 1 ? video : nil
        case .boolean, .button, .menu: return nil
        }
    }

    private var hasTorch: Bool {
        [Self.lightOff, Self.lightOn].allSatisfy { all[ID.flashMode]?.canBe($0) == true }
    }

    // MARK: Answers

    package var abilities: [CaptureControl: CameraAbility] {
        var abilities: [CaptureControl: CameraAbility] = [:]
        for row in Self.words where row.steps.allSatisfy(has) {
            var words: [String] = []
            if case .words(let before) = abilities[row.control] { words = before }
            if !words.contains(row.word) { abilities[row.control] = .words(words + [row.word]) }
        }
        for row in Self.numbers {
            if let video = video(row.id) { abilities[row.control] = .range(range(of: row.control, video)) }
        }
        if hasTorch { abilities[.torch] = .range(0...1) }
        return abilities
    }

    /// What is set, of those that have a state.
    package var values: [CaptureControl: CameraSetting] {
        var values: [CaptureControl: CameraSetting] = [:]
        for row in Self.words where values[row.control] == nil && row.steps.compactMap(isTrue).allSatisfy(\.self) {
            if row.steps.allSatisfy(has) { values[row.control] = .word(row.word) }
        }
        for row in Self.numbers {
            if let video = video(row.id) { values[row.control] = .number(number(video.value, of: row.control, video)) }
        }
        if hasTorch {
            let isOn = all[ID.flashMode]?.value == Self.lightOn
            let level = video(ID.torchIntensity).map { video in
                Double(video.value - video.range.lowerBound + 1)
                    / Double(video.range.upperBound - video.range.lowerBound + 1)
            }
            values[.torch] = .number(isOn ? level ?? 1 : 0)
        }
        return values
    }

    /// What is written to the driver, in this order; empty: it cannot be set.
    /// - Parameter setting: one that its ability allows.
    package func writes(_ control: CaptureControl, _ setting: CameraSetting) -> [VideoWrite] {
        switch setting {
        case .word(let word):
            let row = Self.words.first {
                $0.control == control && $0.word == word && $0.steps.allSatisfy(has)
            }
            return (row?.steps ?? []).compactMap { step in
                switch step {
                case .set(let id, let value): VideoWrite(id, value)
                case .press(let id): VideoWrite(id, 1)
                case .keep(let id): video(id).map { VideoWrite(id, $0.value) }
                }
            }
        case .number(let level) where control == .torch:
            guard hasTorch else { return [] }
            if level == 0 { return [VideoWrite(ID.flashMode, Self.lightOff)] }
            let brightness = video(ID.torchIntensity).map { video in
                let length = Double(video.range.upperBound - video.range.lowerBound + 1)
                return VideoWrite(video.id, video.nearest(Double(video.range.lowerBound) + level * length - 1))
            }
            return [brightness, VideoWrite(ID.flashMode, Self.lightOn)].compactMap(\.self)
        case .number(let number):
            guard let row = Self.numbers.first(where: { $0.control == control }), let video = video(row.id) else {
                return []
            }
            let before = row.before.flatMap { all[$0.id]?.canBe($0.value) == true ? $0 : nil }
            return [before, VideoWrite(row.id, value(number, of: control, video))].compactMap(\.self)
        case .other: return []
        }
    }
}
