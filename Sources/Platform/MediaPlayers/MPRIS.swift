import DBus
import EventLoop
import MediaControl

/// The names of MPRIS 2.2.
enum MPRIS {
    /// The prefix of every player's bus name, before a dot.
    static let namespace = "org.mpris.MediaPlayer2"
    static let path = "/org/mpris/MediaPlayer2"
    static let root = "org.mpris.MediaPlayer2"
    static let player = "org.mpris.MediaPlayer2.Player"

    /// The name of the player in front.
    static let front = namespace + ".sessiond"
    /// Names that represent other players; treating them as players would create a loop.
    static let mirrors: Set<String> = [front, namespace + ".playerctld"]

    /// The time limit for an answer of a player, in seconds. No other call waits for it.
    static let patience = 5.0
}

extension PlayerFacts {
    /// The properties that decisions depend on.
    private static let names: Set<String> = ["PlaybackStatus", "Metadata", "CanPlay", "CanPause", "CanControl"]

    static func concern(_ names: some Sequence<String>) -> Bool { names.contains { PlayerFacts.names.contains($0) } }

    /// Takes the properties that exist and have the right type.
    mutating func merge(_ properties: [String: Value]) {
        if let text = properties["PlaybackStatus"]?.stringValue, let value = PlaybackStatus(rawValue: text) {
            status = value
        }
        if let metadata = properties["Metadata"]?.asProperties {
            func text(_ name: String) -> String {
                // Some players send the id as a string.
                metadata[name]?.stringValue ?? metadata[name]?.objectPathValue ?? ""
            }
            track = Track(id: text("mpris:trackid"), url: text("xesam:url"), title: text("xesam:title"))
        }
        if let value = properties["CanPlay"]?.boolValue { canPlay = value }
        if let value = properties["CanPause"]?.boolValue { canPause = value }
        if let value = properties["CanControl"]?.boolValue { canControl = value }
    }
}

extension Connection {
    /// Calls a player's object; the answer comes from the loop, once, at the latest after `timeout` seconds.
    func call(
        player: String, _ interface: String, _ member: String, _ arguments: [Value] = [],
        timeout: Double = MPRIS.patience, _ reply: @escaping (Result<[Value], Failure>) -> Void
    ) {
        do throws(Failure) {
            let message = try Message.methodCall(
                destination: player, path: MPRIS.path, interface: interface.isEmpty ? nil : interface, member: member)
            message.autoStart = false
            message.append(arguments)
            call(message, timeout: timeout, reply)
        } catch {
            loop.later { reply(.failure(error)) }
        }
    }
}
