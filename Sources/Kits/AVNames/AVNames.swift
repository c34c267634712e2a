@_exported public import SessionKit

// The names of AVFoundation and MediaPlayer, for apps that come from iOS: `import AVNames` instead of those two. Where iOS
// has calls that block, delegates and notifications, this module has them, too.

public typealias AVAudioSession = AudioSession
public typealias AVAudioPlayer = AudioPlayer
public typealias AVAudioRecorder = AudioRecorder
public typealias AVPlayer = Player
public typealias AVPlayerItem = PlayerItem
public typealias AVQueuePlayer = QueuePlayer
public typealias CMTime = MediaTime
public typealias MPNowPlayingInfoCenter = NowPlayingInfoCenter
public typealias MPRemoteCommand = RemoteCommand
public typealias MPRemoteCommandCenter = RemoteCommandCenter
public typealias MPRemoteCommandHandlerStatus = RemoteCommandHandlerStatus
public typealias MPMediaItem = MediaItem
public typealias MPMediaItemCollection = MediaItemCollection
public typealias MPMediaLibrary = MediaLibrary
public typealias MPMediaPlaylist = MediaPlaylist
public typealias MPMediaQuery = MediaQuery
public typealias MPMusicPlayerController = MusicPlayer

extension AVAudioSession.Port {
    /// For display.
    public var portName: String { name }
    public var portType: PortType { type }
}

/// MPMediaItemPropertyTitle and so on, and MPNowPlayingInfoPropertyPlaybackRate: keys of the now-playing info.
public let MPMediaItemPropertyTitle = NowPlayingInfo.title
public let MPMediaItemPropertyArtist = NowPlayingInfo.artist
public let MPMediaItemPropertyAlbumTitle = NowPlayingInfo.albumTitle
public let MPMediaItemPropertyPlaybackDuration = NowPlayingInfo.playbackDuration
public let MPNowPlayingInfoPropertyElapsedPlaybackTime = NowPlayingInfo.elapsedPlaybackTime
public let MPNowPlayingInfoPropertyPlaybackRate = NowPlayingInfo.playbackRate
