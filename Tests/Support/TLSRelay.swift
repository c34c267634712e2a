import Foundation

/// TLS before a server on this machine, with a certificate for 127.0.0.1 that an authority of this test has signed.
public final class TLSRelay {
    public enum Certificate: String, CaseIterable, Sendable {
        case valid
        /// It is of another host.
        case otherName = "other-name"
        case expired
        /// The authority has not signed it.
        case own
    }

    public let port: Int
    /// The authorities of the machine, and the one of this test.
    public let authorities: String
    private let folder: PrivateFolder
    private let child: Child

    private static let list = "/etc/ssl/certs/ca-certificates.crt"
    private static let trustsWithin =
        "mount --bind \"$1\" \(list) || exit 126; shift; exec \"$@\""

    public static var isInstalled: Bool { Child.isInstalled("openssl") }
    /// Whether a program can be made to trust the authority of the test: only root may.
    public static let canBeTrusted: Bool =
        geteuid() == 0 && FileManager.default.fileExists(atPath: list)
        && (try? Child.run("unshare", ["--mount", "/bin/sh", "-c", trustsWithin, "sh", list, "true"])) != nil

    public init(to port: Int, _ certificate: Certificate = .valid) throws {
        let folder = try PrivateFolder()
        self.folder = folder
        func path(_ name: String) -> String { folder.path + "/" + name }
        func openssl(_ words: [String]) throws { try Child.run("openssl", words) }
        let key = ["-newkey", "rsa:2048", "-nodes"]
        try openssl(
            ["req", "-x509"] + key + ["-days", "2", "-subj", "/CN=Test authority", "-keyout", path("authority.key")]
                + ["-out", path("authority.pem")])
        let name = certificate == .otherName ? "DNS:elsewhere.example" : "IP:127.0.0.1"
        _ = try folder.file("names", "subjectAltName=\(name)\n")
        if certificate == .own {
            try openssl(
                ["req", "-x509"] + key + ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=\(name)"]
                    + ["-keyout", path("key.pem"), "-out", path("certificate.pem")])
        } else {
            try openssl(
                ["req"] + key + ["-subj", "/CN=127.0.0.1", "-keyout", path("key.pem"), "-out", path("request.pem")])
            try openssl(
                ["x509", "-req", "-in", path("request.pem"), "-CA", path("authority.pem"), "-CAkey"]
                    + [path("authority.key"), "-CAcreateserial", "-days", certificate == .expired ? "0" : "2"]
                    + ["-extfile", path("names"), "-out", path("certificate.pem")])
            // It is valid until the second in which it was signed is over.
            let end = Date().addingTimeInterval(1.1)
            if certificate == .expired { eventually { Date() > end } }
        }
        let known = (try? String(contentsOfFile: Self.list, encoding: .utf8)) ?? ""
        authorities = try folder.file(
            "authorities.pem", known + (try String(contentsOfFile: path("authority.pem"), encoding: .utf8)))
        child = try Child(
            "/usr/bin/python3",
            [
                repository.appendingPathComponent("Tests/Support/TLSRelay.py").path, path("certificate.pem"),
                path("key.pem"), "\(port)",
            ])
        guard let line = child.line(where: { Int($0) != nil }), let own = Int(line) else {
            throw SupportError("the relay did not start: \(child.errors)")
        }
        self.port = own
    }

    /// The words that start a program which trusts the authority of this test.
    public func trusting(_ program: String, _ arguments: [String]) -> [String] {
        ["--mount", "/bin/sh", "-c", Self.trustsWithin, "sh", authorities, program] + arguments
    }
}
