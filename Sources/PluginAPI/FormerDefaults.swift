/// The default devices before sessions needed other ones, until they are the default again.
public struct FormerDefaults: Sendable, Hashable {
    public struct Device: Sendable, Hashable {
        /// The port; empty if the device has none.
        public var uid: String
        /// The server's name of the sink or source.
        public var name: String
        /// Whether it is the configured default. Otherwise the server chose it, and no configured default may remain.
        public var isChosen: Bool

        public init(uid: String, name: String, isChosen: Bool) {
            (self.uid, self.name, self.isChosen) = (uid, name, isChosen)
        }
    }

    /// nil: no session has needed another one.
    public var output: Device?
    public var input: Device?

    public init(output: Device? = nil, input: Device? = nil) { (self.output, self.input) = (output, input) }

    public var isEmpty: Bool { output == nil && input == nil }
}
