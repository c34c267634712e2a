import Glibc

/// The controlling terminal, lent to a command's process group while it runs, as a shell does.
final class TerminalLoan {
    private let borrower: pid_t
    /// Ours while it is lent, theirs while it is not.
    private var attributes: termios?
    private(set) var isLent = false

    init(to group: pid_t) {
        borrower = group
        // Setting the terminal's group from behind would stop us.
        signal(SIGTTOU, SIG_IGN)
    }

    /// Gives it away where it is ours to give: nothing happens in the background, or without a terminal.
    func lend() {
        guard !isLent, isatty(STDIN_FILENO) == 1, tcgetpgrp(STDIN_FILENO) == getpgrp() else { return }
        isLent = true
        swapAttributes()
        tcsetpgrp(STDIN_FILENO, borrower)
    }

    /// Takes it back where the borrower still has it, so that keys reach us.
    func takeBack() {
        guard isLent else { return }
        isLent = false
        guard tcgetpgrp(STDIN_FILENO) == borrower else { return }
        tcsetpgrp(STDIN_FILENO, getpgrp())
        swapAttributes()
    }

    /// A command that reads single keys finds the terminal as it left it, and so do we.
    private func swapAttributes() {
        var current = termios()
        guard tcgetattr(STDIN_FILENO, &current) == 0 else { return }
        if var other = attributes { tcsetattr(STDIN_FILENO, TCSADRAIN, &other) }
        attributes = current
    }
}
