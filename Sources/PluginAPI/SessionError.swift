/// The refusal of a request: a code for programs, and a message that tells the user what to do.
public struct SessionError: Error, Sendable, Hashable, CustomStringConvertible, Codable {
    /// The refusals of rules §9. The raw value is the last part of the bus error's name.
    public enum Code: String, CaseIterable, Sendable, Hashable, Codable {
        /// The sound server or the daemon is not available.
        case mediaServicesFailed = "MediaServicesFailed"
        /// The recording, upload or plugin is in use: stop it first, or use another one.
        case isBusy = "IsBusy"
        /// Not allowed in this category: an override outside play-and-record, loading an item in audio-processing.
        case incompatibleCategory = "IncompatibleCategory"
        /// A non-mixable session was activated in the background.
        case cannotInterruptOthers = "CannotInterruptOthers"
        /// A privileged class that the settings do not allow to this program.
        case missingEntitlement = "MissingEntitlement"
        /// Ambient or solo-ambient in the background; a player with nothing to play, or in a category without playback.
        case cannotStartPlaying = "CannotStartPlaying"
        /// A mixable play-and-record in the background; a recorder without a file, or in a category without recording.
        case cannotStartRecording = "CannotStartRecording"
        /// An unknown or invalid value; the message names it.
        case badParameter = "BadParameter"
        /// A call or an alert is active.
        case insufficientPriority = "InsufficientPriority"
        /// A limit is reached, or a resource does not exist.
        case resourceNotAvailable = "ResourceNotAvailable"
        /// Part of the contract; this service never uses it.
        case sessionNotActive = "SessionNotActive"
        /// The session was closed.
        case expiredSession = "ExpiredSession"
        /// The session belongs to another client.
        case notOwner = "NotOwner"

        // Of jobs and files.

        /// The file, address or item does not exist.
        case notFound = "NotFound"
        /// The format of the file is not supported.
        case formatNotSupported = "FormatNotSupported"
        /// The content of the file is damaged, or reading it took too long or crashed its worker.
        case decodeFailed = "DecodeFailed"
        /// No installed plugin decodes it; the message names the missing one.
        case decoderNotFound = "DecoderNotFound"
        /// No installed plugin encodes it; the message names the missing one.
        case encoderNotFound = "EncoderNotFound"
        /// The film has no picture at that time.
        case noImageAtTime = "NoImageAtTime"
        /// The export could not write the file.
        case exportFailed = "ExportFailed"
        /// The target exists, and may not be replaced.
        case fileAlreadyExists = "FileAlreadyExists"
        /// The disk is full, or has not enough space.
        case diskFull = "DiskFull"
        /// The server cannot be reached, or answered with an error; the message has the HTTP status.
        case networkFailed = "NetworkFailed"
        /// There was no answer in time.
        case timedOut = "TimedOut"
        /// The job was cancelled.
        case cancelled = "Cancelled"
        /// Not possible for this item or this job.
        case notSupported = "NotSupported"
        /// Not possible yet.
        case notReady = "NotReady"
        /// The source is not a valid file, or has changed.
        case invalidSource = "InvalidSource"

        /// The platform's number in its usual form, a four-character code or a decimal number; empty if it has none.
        public var platformCode: String {
            switch self {
            case .mediaServicesFailed: "msrv"
            case .isBusy: "!act"
            case .incompatibleCategory: "!cat"
            case .cannotInterruptOthers: "!int"
            case .missingEntitlement: "ent?"
            case .cannotStartPlaying: "!pla"
            case .cannotStartRecording: "!rec"
            case .badParameter: "-50"
            case .insufficientPriority: "!pri"
            case .resourceNotAvailable: "!res"
            case .sessionNotActive: "inac"
            case .expiredSession: "!ses"
            case .notOwner, .notFound, .notReady: ""
            case .formatNotSupported: "-11828"
            case .decodeFailed: "-11821"
            case .decoderNotFound: "-11833"
            case .encoderNotFound: "-11834"
            case .noImageAtTime: "-11832"
            case .exportFailed: "-11820"
            case .fileAlreadyExists: "-11823"
            case .diskFull: "-11807"
            case .networkFailed: "-1009"
            case .timedOut: "-1001"
            case .cancelled: "-999"
            case .notSupported: "-11838"
            case .invalidSource: "-11822"
            }
        }

        fileprivate var suffix: String { platformCode.isEmpty ? "" : " (\(platformCode))" }
    }

    public let code: Code
    /// Ends with the platform's number in parentheses if there is one.
    public let message: String

    /// `reason`: the error, then what to do. The platform's number is appended.
    public init(_ code: Code, _ reason: String) {
        self.code = code
        message = reason + code.suffix
    }

    /// An earlier refusal whose message is already complete.
    public init(_ code: Code, asWritten message: String) {
        self.code = code
        self.message = message
    }

    /// The message without the platform's number.
    public var reason: String {
        message.hasSuffix(code.suffix) ? String(message.dropLast(code.suffix.count)) : message
    }

    /// The most common error; the message names the value.
    public static func badParameter(_ message: String) -> SessionError { SessionError(.badParameter, message) }

    public var description: String { "\(code.rawValue): \(message)" }
}
