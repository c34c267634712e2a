import DBus
public import PluginAPI

extension AudioSessionClient {
    /// The parameters of a new session.
    public struct Description: Sendable {
        /// For display, not empty: `sessionctl status` and interrupted clients show it.
        public var name: String
        public var category: Category
        public var mode: Mode
        public var options: Options
        /// Classes above `.app` need the permission of the daemon's settings.
        public var sessionClass: SessionClass
        /// The app's desktop file without directory and `.desktop`, such as `org.example.Radio`; empty: none.
        public var desktopEntry: String
        /// A process of the same user that plays for this one: its streams belong to the session. Nil: this process.
        public var processID: UInt32?
        /// Whether others get the should-resume hint if the process ends without deactivating.
        public var notifiesOnExit: Bool
        /// Whether the program ducks its own sound at `duckingChanged`; otherwise the daemon ducks its streams.
        public var lowersItself: Bool
        /// Whether the session is that of the program that started this one, which asks the daemon itself: nothing is
        /// registered here, and every request to sound is granted at once.
        package var isHosted = false

        public init(
            name: String, category: Category? = nil, mode: Mode = .default, options: Options = [],
            sessionClass: SessionClass = .app, desktopEntry: String = "", processID: UInt32? = nil,
            notifiesOnExit: Bool = false, lowersItself: Bool = false
        ) {
            self.name = name
            self.category = category ?? .initial(of: sessionClass)
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
