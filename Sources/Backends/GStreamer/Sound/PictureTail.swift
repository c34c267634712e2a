package import CGStreamer
package import GStreamerBase

/// The end of a film's pictures in its pipeline, beside ``SoundTail``: from raw pictures to what shows them.
///
/// A player has one, which each item adds to its pipeline. Called on the thread of the loop.
package protocol PictureTail: AnyObject {
    /// The shown picture does not have the size of its place any more. While the film does not play, a seek to where it
    /// is brings a new one.
    var onStale: (() -> Void)? { get set }
    /// The pictures of the current film cannot be shown any more; the message gives the reason.
    var onFailed: ((String) -> Void)? { get set }

    /// Adds its elements to a pipeline in the state NULL, and links them to the pictures of the source.
    /// - Parameters:
    ///   - tracks: the streams of the source; those of its subtitles that are shown are drawn into the pictures.
    ///   - title: the name of the item until its tags are known.
    func enter(
        _ pipeline: Elements.Element, from source: UnsafeMutablePointer<GstPad>, with tracks: FilmTracks, title: String
    ) throws(Elements.Missing)
    /// When the last picture of the current film is shown; nil before there is one.
    var lastPicture: PictureTimes? { get }
    /// How many pictures of the current film came too late to be shown.
    var dropped: UInt64 { get }
    /// The pipeline is in the state NULL, and goes. Does nothing if it has left already.
    func leave(_ pipeline: Elements.Element)
    /// Handles a message of the bus, which is borrowed.
    func take(_ message: UnsafeMutablePointer<GstMessage>, of pipeline: Elements.Element) -> PictureNews
}

/// What a message says about the item.
package enum PictureNews: Sendable, Hashable {
    case nothing
    /// It has pictures, but no sound.
    case hasNoSound
}
