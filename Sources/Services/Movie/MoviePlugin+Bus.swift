import DBus
import PluginAPI
import PluginKit
import SessionBus

// `org.sessiond1.MoviePlayer`.
extension MoviePlugin {
    static let interface = Interface<MoviePlugin>(
        name: PluginKind.moviePlayer.interface, introspection: PluginXML.moviePlayer,
        methods: [
            .init("SetOutput", "s") { movie, call in
                movie.answer(call) { () throws(SessionError) in
                    guard movie.player.engine.uri == nil else {
                        throw SessionError(
                            .isBusy, "a film is loaded: choose the output before, or after it was removed with Exit")
                    }
                    try movie.screen.choose(output: call.arguments[0].stringValue ?? "")
                }
            },
            .init("SetFullscreen", "b") { movie, call in
                movie.answer(call) { () throws(SessionError) in
                    try movie.screen.setFullscreen(call.arguments[0].boolValue == true)
                }
            },
            .init("SelectTrack", "si") { movie, call in
                movie.answer(call) { () throws(SessionError) in
                    guard let kind = TrackKind(rawValue: call.arguments[0].stringValue ?? "") else {
                        throw SessionError(.badParameter, "the type of a track must be audio, video or subtitle")
                    }
                    let number = Int(call.arguments[1].int32Value ?? -1)
                    guard number >= -1 else {
                        throw SessionError(.badParameter, "a track has a number from 0, or -1 for none, not \(number)")
                    }
                    try movie.film.select(kind, number < 0 ? nil : number)
                }
            },
            .init("AddSubtitles", "s") { movie, call in
                movie.answer(call) { () throws(SessionError) in
                    try movie.film.addSubtitles(uri: call.arguments[0].stringValue ?? "")
                }
            },
            .init("Step", "i") { movie, call in
                movie.answer(call) { () throws(SessionError) in
                    try movie.step(Int(call.arguments[0].int32Value ?? 0))
                }
            },
            .init("SkipChapters", "i") { movie, call in
                do throws(Failure) {
                    try movie.skipChapters(Int(call.arguments[0].int32Value ?? 0))
                    call.reply()
                } catch {
                    call.fail(error)
                }
            },
            .init("RequestThumbnails", "ads") { movie, call in movie.requestThumbnails(call) },
            .init("GoToLive", "") { movie, call in
                movie.answer(call) { () throws(SessionError) in try movie.player.goToLive() }
            },
            .init("Exit", "") { movie, call in
                movie.exit()
                call.reply()
            },
        ],
        properties: properties.map(\.exported))

    private func answer(_ call: Invocation, _ body: () throws(SessionError) -> Void) {
        do throws(SessionError) {
            try player.changing(body)
            call.reply()
        } catch {
            call.fail(Failure(error))
        }
    }

    private func requestThumbnails(_ call: Invocation) {
        do throws(SessionError) {
            guard let uri = player.engine.uri else {
                throw SessionError(.notReady, "no film is loaded: load one first")
            }
            guard sourceType == "file" else {
                throw SessionError(.notSupported, "pictures are taken of films in files on this machine alone")
            }
            let times = call.arguments[0].arrayValue?.compactMap(\.doubleValue) ?? []
            let job = try thumbnails.request(uri, times, call.arguments[1].stringValue ?? "", for: call.sender) {
                [weak self] image in self?.emit("ThumbnailImage", image)
            }
            call.reply([.objectPath(job)])
        } catch {
            call.fail(Failure(error))
        }
    }

    private static func described(_ track: MediaTrack) -> Value {
        .properties([
            ("type", .string(track.kind.rawValue)), ("selected", .bool(track.isSelected)),
            ("language", .string(track.language)), ("title", .string(track.title)), ("codec", .string(track.codec)),
            ("file", .bool(track.isFile)),
        ])
    }

    static var properties: [Announcement<MoviePlugin>.Property] {
        [
            .init("Output", "s", { .string($0.screen.output) }),
            .init("LoadState", "as", { .strings($0.loadState) }),
            .init(
                "ScalingMode", "s", { .string($0.screen.scaling.rawValue) },
                set: { movie, value throws(Failure) in
                    guard let scaling = MovieScaling(rawValue: value.stringValue ?? "") else {
                        let names = MovieScaling.allCases.map(\.rawValue).joined(separator: ", ")
                        throw Failure(
                            .badParameter("ScalingMode must be one of \(names), not \(quoted(value.stringValue ?? ""))")
                        )
                    }
                    movie.player.changing { movie.screen.scaling = scaling }
                }),
            .init(
                "ControlStyle", "s", { .string($0.controlStyle.rawValue) },
                set: { movie, value throws(Failure) in
                    guard let style = MoviePlugin.ControlStyle(rawValue: value.stringValue ?? "") else {
                        let names = MoviePlugin.ControlStyle.allCases.map(\.rawValue).joined(separator: ", ")
                        let word = quoted(value.stringValue ?? "")
                        throw Failure(.badParameter("ControlStyle must be one of \(names), not \(word)"))
                    }
                    movie.player.changing { movie.controlStyle = style }
                }),
            .init("Tracks", "aa{sv}", { .array(of: "a{sv}", $0.film.tracks.map(described)) }),
            .init("IsLive", "b", { .bool($0.film.isLive) }),
            .init("Latency", "d", isTold: false, { .double($0.film.latency ?? 0) }),
            .init(
                "TargetLatency", "d", { .double($0.film.targetLatency ?? -1) },
                set: { movie, value throws(Failure) in
                    let time = value.doubleValue ?? .nan
                    guard time == -1 || (0.05...60).contains(time) else {
                        throw Failure(
                            .badParameter("TargetLatency must be -1, or seconds from 0.05 to 60, not \(time)"))
                    }
                    movie.player.changing { movie.film.targetLatency = time < 0 ? nil : time }
                }),
            .init("DroppedFrames", "t", isTold: false, { .uint64($0.film.droppedPictures) }),
            .init(
                "Chapters", "a(ds)",
                {
                    .array(of: "(ds)", $0.film.chapters.map { .structure([.double($0.start), .string($0.title)]) })
                }),
            .init(
                "ShouldAutoplay", "b", { .bool($0.shouldAutoplay) },
                set: { movie, value throws(Failure) in
                    movie.player.changing { movie.shouldAutoplay = value.boolValue == true }
                }),
            .init(
                "InitialPlaybackTime", "d", { .double($0.initialTime) },
                set: { movie, value throws(Failure) in
                    let time = value.doubleValue ?? .nan
                    guard time == -1 || (0..<1e9).contains(time) else {
                        throw Failure(.badParameter("InitialPlaybackTime must be -1, or seconds from 0, not \(time)"))
                    }
                    movie.player.changing { movie.initialTime = time }
                }),
            .init(
                "EndPlaybackTime", "d", { .double($0.film.endTime ?? -1) },
                set: { movie, value throws(Failure) in
                    let time = value.doubleValue ?? .nan
                    guard time == -1 || (time > 0 && time < 1e9) else {
                        throw Failure(.badParameter("EndPlaybackTime must be -1, or seconds above 0, not \(time)"))
                    }
                    movie.player.changing { movie.film.endTime = time < 0 ? nil : time }
                }),
            .init("Fullscreen", "b", { .bool($0.screen.isFullscreen) }),
            .init("ReadyForDisplay", "b", { .bool($0.screen.isReady) }),
            .init("PreparedToPlay", "b", { .bool($0.player.itemStatus == .ready) }),
            .init(
                "NaturalSize", "(uu)",
                { movie in
                    let size = movie.screen.naturalSize
                    return .structure([.uint32(UInt32(clamping: size.width)), .uint32(UInt32(clamping: size.height))])
                }),
            .init(
                "PlayableDuration", "d", isTold: false,
                { .double($0.player.engine.loadedRanges.last?.upperBound ?? 0) }),
            .init("MediaTypes", "as", { .strings($0.screen.mediaTypes) }),
            .init("SourceType", "s", { .string($0.sourceType) }),
            .init("AllowsAirPlay", "b", isTold: false, { _ in .bool(true) }),
            .init("AirPlayVideoActive", "b", { _ in .bool(false) }),
        ]
    }
}
