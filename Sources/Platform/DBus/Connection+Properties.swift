extension Connection {
    /// Calls with the interface and the new values of a PropertiesChanged signal. Values that it only names are read
    /// first; those that cannot be read are left out.
    public func readChanges(
        _ signal: Message, _ handler: @escaping (_ interface: String, _ properties: [String: Value]) -> Void
    ) {
        guard let arguments = try? signal.arguments(), arguments.count == 3, let interface = arguments[0].stringValue,
            let named = arguments[2].stringsValue
        else { return }
        let told = arguments[1].asProperties ?? [:]
        guard !named.isEmpty, let sender = signal.sender, let path = signal.path,
            let call = try? Message.methodCall(
                destination: sender, path: path, interface: StandardName.properties, member: "GetAll")
        else { return handler(interface, told) }
        call.append([.string(interface)])
        self.call(call) { answer in
            let all = (try? answer.get())?.first?.asProperties ?? [:]
            handler(interface, told.merging(all.filter { named.contains($0.key) }) { $1 })
        }
    }
}
