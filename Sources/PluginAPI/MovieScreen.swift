/// How a picture is placed in a window of another shape. The raw value is the word on the wire.
public enum MovieScaling: String, CaseIterable, Sendable, Hashable {
    /// One pixel of the picture is one of the screen, in the middle; what does not fit is cut off.
    case none
    /// The whole picture, as large as it fits.
    case aspectFit = "aspect-fit"
    /// The whole window; what does not fit is cut off.
    case aspectFill = "aspect-fill"
    /// The whole window, stretched.
    case fill
}

/// Width and height in pixels of the screen; 0 × 0 if unknown.
public struct PictureSize: Sendable, Hashable {
    public var width: Int
    public var height: Int

    public static let unknown = PictureSize(width: 0, height: 0)

    public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }
}

/// What a user does at the window of a movie, by a key, the pointer or the window manager.
public enum MovieCommand: Sendable, Hashable {
    case playOrPause
    /// Seconds from here.
    case seek(Double)
    /// Steps of the rate: 1 faster, −1 slower.
    case changeRate(Int)
    case toggleFullscreen
    case leaveFullscreen
    case toggleMute
    /// A part of the full volume.
    case changeVolume(Double)
    case toggleLoop
    /// Pictures from the one that is shown.
    case step(Int)
    /// The next track with sound, the next subtitles or none.
    case nextTrack(TrackKind)
    /// Chapters from the one that is played.
    case skipChapters(Int)
    case exit
}

/// The stages of a change to full screen and back.
public enum FullscreenChange: Sendable, Hashable {
    case willEnter, didEnter, willExit, didExit
}

/// Where the pictures of a movie player are shown (the port beside ``PlayerEngine`` behind `org.sessiond1.MoviePlayer`).
///
/// Belongs to the loop: methods are called and callbacks come only on its thread. A callback may call any method.
public protocol MovieScreen: AnyObject {
    /// The ``MovieOutput/word`` of the output that is used; before the first film, of the one that was requested.
    var output: String { get }
    /// The size of the loaded film as it is meant to be seen: turned, and with square pixels.
    var naturalSize: PictureSize { get }
    /// `audio` and `video`, as far as they are in the loaded film; empty while unknown.
    var mediaTypes: [String] { get }
    /// Whether a picture of the loaded film is shown. With the output `none`, whether it could be.
    var isReady: Bool { get }
    /// Kept for all films.
    var scaling: MovieScaling { get set }
    var isFullscreen: Bool { get }
    /// The title of the window.
    var title: String { get set }

    /// After any of the properties has changed.
    var onChanged: (() -> Void)? { get set }
    var onFullscreen: ((FullscreenChange) -> Void)? { get set }
    var onCommand: ((MovieCommand) -> Void)? { get set }
    /// The screen cannot be used any more; the message gives the reason. It has no picture until the next film is loaded.
    var onLost: ((String) -> Void)? { get set }

    /// Chooses the output of the next film by the word of a ``MovieOutput``.
    /// - Throws: `BadParameter` for any other word; `NotSupported` if it cannot be used here; the message gives the reason.
    func choose(output: String) throws(SessionError)
    /// Requests full screen or its end; ``onFullscreen`` reports what happens.
    /// - Throws: `NotReady` before a window is shown; `NotSupported` for an output that cannot.
    func setFullscreen(_ isFull: Bool) throws(SessionError)
    /// A film was loaded, or none: nothing is known of its pictures.
    func begin()
    /// Removes the window until the next film is loaded.
    func hide()
    /// Draws a text into the pictures for two seconds.
    func note(_ text: String)
}
