/// MPMediaType.
public struct MPMediaType: OptionSet, Sendable, Hashable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static let music = MPMediaType(rawValue: 1)
    public static let podcast = MPMediaType(rawValue: 2)
    public static let audioBook = MPMediaType(rawValue: 4)
    public static let anyAudio = MPMediaType(rawValue: 0xFF)
    public static let any = MPMediaType(rawValue: .max)

    var kinds: Set<MediaItem.MediaType> {
        if isSuperset(of: .anyAudio) { return [] }
        let all: [(MPMediaType, MediaItem.MediaType)] = [
            (.music, .music), (.podcast, .podcast), (.audioBook, .audiobook),
        ]
        return Set(all.filter { contains($0.0) }.map(\.1))
    }
}

/// As on iOS. Called on the main thread. Both methods have defaults that do nothing.
public protocol MPMediaPickerControllerDelegate: AnyObject {
    func mediaPicker(
        _ mediaPicker: MPMediaPickerController, didPickMediaItems mediaItemCollection: MPMediaItemCollection)
    /// The user picked nothing, the library ended, or there is no picker.
    func mediaPickerDidCancel(_ mediaPicker: MPMediaPickerController)
}

extension MPMediaPickerControllerDelegate {
    public func mediaPicker(
        _ mediaPicker: MPMediaPickerController, didPickMediaItems mediaItemCollection: MPMediaItemCollection
    ) {}
    public func mediaPickerDidCancel(_ mediaPicker: MPMediaPickerController) {}
}

/// Lets the user pick items of the music library, and tells its delegate. ``present()`` takes the place of the view
/// controller that presents it on iOS.
@MainActor
public final class MPMediaPickerController {
    public let mediaTypes: MPMediaType
    public var allowsPickingMultipleItems = false
    /// The text above the list; nil: a default text.
    public var prompt: String?
    public weak var delegate: (any MPMediaPickerControllerDelegate)?
    private var work: Task<Void, Never>?

    public init(mediaTypes: MPMediaType = .any) { self.mediaTypes = mediaTypes }

    /// Shows the picker. Without effect while it is shown.
    public func present() {
        guard work == nil else { return }
        var picker = MediaPicker(mediaTypes: mediaTypes.kinds)
        picker.allowsPickingMultipleItems = allowsPickingMultipleItems
        picker.prompt = prompt
        work = Task { [picker] in
            var items: MPMediaItemCollection?
            do throws(SessionError) {
                items = try await picker.pick()
            } catch {
                logged("MPMediaPickerController", error)
            }
            // Dismissed: another one may be shown already.
            guard !Task.isCancelled else { return }
            work = nil
            if let items {
                delegate?.mediaPicker(self, didPickMediaItems: items)
            } else {
                delegate?.mediaPickerDidCancel(self)
            }
        }
    }

    /// Closes it if it is shown. Its delegate is not told.
    public func dismiss(animated: Bool = true, completion: (() -> Void)? = nil) {
        work?.cancel()
        work = nil
        completion?()
    }
}
