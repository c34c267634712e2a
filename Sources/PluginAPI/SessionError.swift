/// Why a request was refused: a code a program can act on, and a message that tells a person what to do.
public struct SessionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The refusals of behaviour §9. The raw value is the last part of the bus error's name.
    public enum Code: String, CaseIterable, Sendable, Hashable {
        case mediaServicesFailed = "MediaServicesFailed"
        case isBusy = "IsBusy"
        case incompatibleCategory = "IncompatibleCategory"
        case cannotInterruptOthers = "CannotInterruptOthers"
        case missingEntitlement = "MissingEntitlement"
        case cannotStartPlaying = "CannotStartPlaying"
        case cannotStartRecording = "CannotStartRecording"
        case badParameter = "BadParameter"
        case insufficientPriority = "InsufficientPriority"
        case resourceNotAvailable = "ResourceNotAvailable"
        case sessionNotActive = "SessionNotActive"
        case expiredSession = "ExpiredSession"
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
    }

    public let code: Code
    /// Ends with the platform's number in parentheses where there is one.
    public let message: String

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = code.platformCode.isEmpty ? message : "\(message) (\(code.platformCode))"
    }

    /// A refusal of before, whose message is whole already.
    public init(_ code: Code, asWritten message: String) {
        self.code = code
        self.message = message
    }

    public static func badParameter(_ message: String) -> SessionError { SessionError(.badParameter, message) }

    public var description: String { "\(code.rawValue): \(message)" }
}
