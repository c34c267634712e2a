/// What is needed to answer a call: the call without its arguments.
///
/// The bus delivers nothing while the received messages that are kept are too large. So a call that is answered later
/// must not keep its message: the answer could depend on what the bus cannot deliver.
struct CallHeader {
    let sender: String?
    let member: String
    let noReplyExpected: Bool
    private let serial: UInt32

    init(_ call: Message) {
        sender = call.sender
        member = call.member ?? ""
        noReplyExpected = call.noReplyExpected
        serial = call.serial
    }

    /// An empty answer. The call must have been sent or received.
    func reply() -> Message { Message(answer(.methodReturn)) }

    /// A malformed name becomes `…Error.Failed`.
    func error(name: String, text: String) -> Message {
        var draft = answer(.error)
        draft.errorName = Syntax.isErrorName(name) ? name : Failure.Name.failed
        let error = Message(draft)
        error.append([.string(text)])
        return error
    }

    private func answer(_ kind: Draft.Kind) -> Draft {
        precondition(serial != 0, "a reply to a message that nobody has sent")
        var draft = Draft(kind)
        draft.destination = sender
        draft.replySerial = serial
        return draft
    }
}
