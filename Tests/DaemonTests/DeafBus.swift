import TestSupport

/// A bus that accepts every connection and never answers.
enum DeafBus {
    /// Listens on the socket `bus` in that folder. Prints `ready`, then the first bytes of each client in hexadecimal.
    static func start(in folder: PrivateFolder) throws -> Child {
        try Child(
            "/usr/bin/python3",
            [
                "-u", "-c",
                """
                import socket, sys
                deaf = socket.socket(socket.AF_UNIX)
                deaf.bind(sys.argv[1])
                deaf.listen(8)
                print('ready')
                open = []
                while True:
                    open.append(deaf.accept()[0])
                    print(open[-1].recv(4).hex())
                """, folder.path + "/bus",
            ])
    }
}
