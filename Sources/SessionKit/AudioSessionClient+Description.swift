import DBus
public import PluginAPI

extension AudioSessionClient {
    /// What the session is created with.
    public struct Description: Sendable {
        /// For people, and not empty: what `sessionctl status` shows and those who are interrupted read.
        public var name: String
        public var category: Category
        public var mode: Mode
        public var options: Options
        /// The daemon grants more than `.app` only where its settings allow.
        public var sessionClass: SessionClass
        /// The app's desktop file without folder and `.desktop`, such as `org.example.Radio`; empty: none.
        public var desktopEntry: String
        /// A process that acts for this one, of the same user: its streams are the session's. Nil: this one.
        public var processID: UInt32?
        /// Whether others are recommended to resume where the process ends without a word.
        public var notifiesOnExit: Bool
        /// Whether the program lowers its own sound at `duckingChanged`; of any other the daemon lowers the streams.
        public var lowersItself: Bool

        public init(
            name: String, category: Category = .soloAmbient, mode: Mode = .default, options: Options = [],
            sessionClass: SessionClass = .app, desktopEntry: String = "", processID: UInt32? = nil,
            notifiesOnExit: Bool = false, lowersItself: Bool = false
        ) {
            self.name = name
            self.category = category
            self.mode = mode
            self.options = options
            self.sessionClass = sessionClass
            self.desktopEntry = desktopEntry
            self.processID = processID
            self.notifiesOnExit = notifiesOnExit
            self.lowersItself = lowersItself
        }

        var wireOptions: [(String, Value)] {
            var values: [(String, Value)] = [
                ("category", .string(category.rawValue)), ("mode", .string(mode.rawValue)),
                ("options", .strings(options.names)),
                ("class", .string(sessionClass.rawValue)), ("notify-on-exit", .bool(notifiesOnExit)),
            ]
            if !desktopEntry.isEmpty { values.append(("desktop-entry", .string(desktopEntry))) }
            if let processID { values.append(("pid", .uint32(processID))) }
            if lowersItself { values.append(("lowers-itself", .bool(true))) }
            return values
        }
    }
}
