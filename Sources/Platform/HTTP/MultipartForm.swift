/// The body of a form with a file (`multipart/form-data`, RFC 7578).
public struct MultipartForm {
    public let body: HTTPBody
    public let contentType: String

    /// The fields in that order, then the file.
    ///
    /// - Parameter file: the name of its field, its file name, its type, and the part of the file that is sent.
    public init(
        fields: [(name: String, value: String)],
        file: (field: String, name: String, type: String, content: HTTPBody.Part)
    ) {
        // The boundary must not occur in the content. 128 random bits do not occur by chance.
        let boundary =
            "sessiond-" + String(UInt64.random(in: 0 ... .max), radix: 36)
            + String(UInt64.random(in: 0 ... .max), radix: 36)
        contentType = "multipart/form-data; boundary=" + boundary
        var head = ""
        for field in fields {
            head +=
                "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(MultipartForm.escaped(field.name))\"\r\n\r\n"
            head += field.value + "\r\n"
        }
        head += "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(MultipartForm.escaped(file.field))\""
        head += "; filename=\"\(MultipartForm.escaped(file.name))\"\r\nContent-Type: \(file.type)\r\n\r\n"
        body = HTTPBody([.bytes(Array(head.utf8)), file.content, .bytes(Array("\r\n--\(boundary)--\r\n".utf8))])
    }

    /// Escapes names as browsers do in forms (the HTML standard, "multipart/form-data encoding algorithm").
    private static func escaped(_ name: String) -> String {
        var text = ""
        for scalar in name.unicodeScalars {
            switch scalar {
            case "\"": text += "%22"
            case "\r": text += "%0D"
            case "\n": text += "%0A"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
