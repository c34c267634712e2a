/// Why a request was refused: a code a program can act on, and a message that tells a person what to do.
public struct SessionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The refusals of behaviour §9. The raw value is the last part of the bus error's name.
    public enum Code: String, CaseIterable, Sendable, Hashable {
        /// The sound server or the daemon is away.
        case mediaServicesFailed = "MediaServicesFailed"
        /// What is asked for needs the sound in use stopped first.
        case isBusy = "IsBusy"
        /// Not in this category: an override outside play-and-record, an item to play in audio-processing.
        case incompatibleCategory = "IncompatibleCategory"
        /// A non-mixable session from the background.
        case cannotInterruptOthers = "CannotInterruptOthers"
        /// A privileged class, or a call, by someone the settings do not allow it.
        case missingEntitlement = "MissingEntitlement"
        /// Ambient or solo-ambient from the background; a player with nothing to play, or in a category that plays nothing.
        case cannotStartPlaying = "CannotStartPlaying"
        /// A mixable play-and-record from the background; a recorder without a file, or in a category that records nothing.
        case cannotStartRecording = "CannotStartRecording"
        /// An unknown or illegal value; the message names it.
        case badParameter = "BadParameter"
        /// A call or an alert is on.
        case insufficientPriority = "InsufficientPriority"
        /// A limit is reached, or what is needed is not there.
        case resourceNotAvailable = "ResourceNotAvailable"
        /// In the contract; this service gives it to nobody.
        case sessionNotActive = "SessionNotActive"
        /// The session was closed.
        case expiredSession = "ExpiredSession"
        /// The session is somebody else's.
        case notOwner = "NotOwner"

        /// The platform's number as it is written there, a four-character code or a decimal; empty where it has none.
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
            case .notOwner: ""
            }
        }

        fileprivate var suffix: String { platformCode.isEmpty ? "" : " (\(platformCode))" }
    }

    public let code: Code
    /// Ends with the platform's number in parentheses where there is one.
    public let message: String

    /// What is wrong, then what to do; the platform's number is put behind it.
    public init(_ code: Code, _ reason: String) {
        self.code = code
        message = reason + code.suffix
    }

    /// A refusal of before, whose message is whole already.
    public init(_ code: Code, asWritten message: String) {
        self.code = code
        self.message = message
    }

    /// The message without the platform's number, which is news only to who called.
    public var reason: String {
        message.hasSuffix(code.suffix) ? String(message.dropLast(code.suffix.count)) : message
    }

    /// The commonest one; the message names the value.
    public static func badParameter(_ message: String) -> SessionError { SessionError(.badParameter, message) }

    public var description: String { "\(code.rawValue): \(message)" }
}
