public typealias MPMusicShuffleMode = MPMusicPlayerController.ShuffleMode
public typealias MPMusicRepeatMode = MPMusicPlayerController.RepeatMode
public typealias MPMusicPlaybackState = MPMusicPlayerController.PlaybackState

/// What reports no error on iOS logs it here.
extension MusicPlayer {
    public nonisolated func setQueue(with collection: MPMediaItemCollection) {
        trying("setQueue") { () async throws(SessionError) in try await self.setQueue(with: collection) }
    }

    public nonisolated func setQueue(with query: MPMediaQuery) {
        trying("setQueue") { () async throws(SessionError) in try await self.setQueue(with: query) }
    }

    public nonisolated func play() { trying("play") { () async throws(SessionError) in try await self.play() } }
    public nonisolated func pause() { trying("pause") { () async throws(SessionError) in try await self.pause() } }
    public nonisolated func stop() { trying("stop") { () async throws(SessionError) in try await self.stop() } }

    public nonisolated func skipToNextItem() {
        trying("skipToNextItem") { () async throws(SessionError) in try await self.skipToNextItem() }
    }

    public nonisolated func skipToPreviousItem() {
        trying("skipToPreviousItem") { () async throws(SessionError) in try await self.skipToPreviousItem() }
    }

    public nonisolated func skipToBeginning() {
        trying("skipToBeginning") { () async throws(SessionError) in try await self.skipToBeginning() }
    }

    public nonisolated func beginSeekingForward() {
        trying("beginSeekingForward") { () async throws(SessionError) in try await self.beginSeekingForward() }
    }

    public nonisolated func beginSeekingBackward() {
        trying("beginSeekingBackward") { () async throws(SessionError) in try await self.beginSeekingBackward() }
    }

    public nonisolated func endSeeking() {
        trying("endSeeking") { () async throws(SessionError) in try await self.endSeeking() }
    }

    public nonisolated var shuffleMode: ShuffleMode {
        get { trying("shuffleMode") { () async throws(SessionError) in try await self.modes().shuffle } ?? .off }
        set { trying("shuffleMode") { () async throws(SessionError) in try await self.setShuffleMode(newValue) } }
    }

    public nonisolated var repeatMode: RepeatMode {
        get { trying("repeatMode") { () async throws(SessionError) in try await self.modes().repeat } ?? .none }
        set { trying("repeatMode") { () async throws(SessionError) in try await self.setRepeatMode(newValue) } }
    }
}
