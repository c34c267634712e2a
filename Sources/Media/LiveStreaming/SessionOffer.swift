/// The offer of GStreamer's webrtcbin, changed into what a server of WHIP (RFC 9725) expects. Such an offer is text of SDP.
public enum SessionOffer {
    /// - webrtcbin offers to receive, too; a client of WHIP only sends.
    /// - We begin the encryption (`active`): the server's certificate then decides about the cipher. GStreamer's own has a key of
    ///   RSA, which some servers do not take from the side that answers.
    public static func sending(_ text: String) -> String {
        text.split(separator: "\r\n", omittingEmptySubsequences: false).map { line in
            switch line {
            case "a=sendrecv": "a=sendonly"
            case "a=setup:actpass": "a=setup:active"
            case _: String(line)
            }
        }.joined(separator: "\r\n")
    }
}
