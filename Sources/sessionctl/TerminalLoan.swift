import Glibc

/// Gives the controlling terminal to a command's process group while it runs, like a shell.
final class TerminalLoan {
    private let borrower: pid_t
    /// The saved attributes: those of this process while the terminal is lent, otherwise those of the command.
    private var attributes: termios?
    private(set) var isLent = false

    init(to group: pid_t) {
        borrower = group
        // Otherwise this process would be stopped when it sets the terminal's group from the background.
        signal(SIGTTOU, SIG_IGN)
    }

    /// Lends the terminal. Does nothing in the background or without a terminal.
    func lend() {
        guard !isLent, isatty(STDIN_FILENO) == 1, tcgetpgrp(STDIN_FILENO) == getpgrp() else { return }
        isLent = true
        swapAttributes()
        tcsetpgrp(STDIN_FILENO, borrower)
    }

    /// Takes the terminal back if the command still has it, so that keys reach this process.
    func takeBack() {
        guard isLent else { return }
        isLent = false
        guard tcgetpgrp(STDIN_FILENO) == borrower else { return }
        tcsetpgrp(STDIN_FILENO, getpgrp())
        swapAttributes()
    }

    /// Restores the attributes of the other process, and saves the current ones. The command may have changed them to
    /// read single keys.
    private func swapAttributes() {
        var current = termios()
        guard tcgetattr(STDIN_FILENO, &current) == 0 else { return }
        if var other = attributes { tcsetattr(STDIN_FILENO, TCSADRAIN, &other) }
        attributes = current
    }
}
