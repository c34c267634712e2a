import DBus
import Foundation
import TestSupport
import Testing

@Suite(.serialized) struct SessionctlRunTests {
    @Test func commandEnds_itsExitCodeIsReturned() throws {
        let stage = try SessionctlStage()
        #expect(try stage.run(["run", "--", "sh", "-c", "echo heard; exit 7"]).output == ["heard"])
        #expect(try stage.run(["run", "--", "sh", "-c", "exit 7"]).code == 7)
        #expect(try stage.run(["run", "--", "sh", "-c", "kill -KILL $$"]).code == 137)
        #expect(try stage.run(["run", "--", "no-such-command"]).code == 127)
        #expect(try stage.run(["run", "--", "/etc/passwd"]).code == 126)
    }

    @Test func commandRuns_itsProcessHasASession() throws {
        let stage = try SessionctlStage()
        let (child, process) = try stage.guarded(
            "Notes", ["--category", "ambient", "--option", "duck-others"], ["sleep", "60"])
        let session = try #require(try stage.session("Notes"))
        #expect(session["Category"]?.stringValue == "ambient")
        #expect(session["Options"]?.stringsValue?.contains("duck-others") == true)
        child.signal(SIGTERM)
        #expect(child.wait() == .code(143))
        #expect(kill(process, 0) != 0)
        #expect(try eventually { try stage.session("Notes") == nil })
    }

    /// Whenever the command ends, sessionctl closes its session before it disconnects, so that the history shows no
    /// lost client.
    @Test func commandEnds_itsSessionIsDeactivatedAndClosed() throws {
        let stage = try SessionctlStage()
        func past() throws -> [String] {
            let decisions = try stage.daemon.manager("History", [.uint32(100)]).first?.arrayValue ?? []
            return decisions.compactMap { $0.asProperties?["event"]?.stringValue }
        }
        #expect(try stage.run(["run", "--", "true"]).code == 0)
        #expect(try past().suffix(4) == ["create", "activate", "deactivate", "close"])
        let (child, _) = try stage.guarded("Notes", [], ["sleep", "60"])
        child.signal(SIGTERM)
        #expect(child.wait() == .code(143))
        #expect(try past().suffix(4) == ["create", "activate", "deactivate", "close"])
        let client = try stage.daemon.client()
        try client.beginCall("Phone")
        #expect(try stage.run(["run", "--category", "record", "--", "true"]).code == 1)
        #expect(try past().last == "close")
        let (killed, process) = try stage.guarded("Music", [], ["sleep", "60"])
        killed.kill()
        #expect(try eventually { try past().last == "client-vanished" })
        let outcome = try stage.run(["history"])
        #expect(outcome.output.last?.contains("a program's connection ended") == true, "\(outcome.text)")
        kill(process, SIGKILL)
    }

    @Test func activationIsRefused_commandNeverRuns() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        try client.beginCall("Phone")
        let outcome = try stage.run(["run", "--category", "record", "--", "echo", "BAD"])
        #expect(outcome.code == 1)
        #expect(outcome.output.isEmpty)
        #expect(outcome.complaint.contains("call"), "\(outcome.complaint)")
        #expect(!outcome.complaint.contains("InsufficientPriority") && !outcome.complaint.contains("(!pri)"))
        let wrong = try stage.run(["run", "--mode", "voice-chat", "--", "echo", "BAD"]).complaint
        #expect(wrong.contains("mode 'voice-chat' is not allowed") && !wrong.contains("BadParameter"))
        #expect(!wrong.contains("(-50)"))
    }

    @Test func callBeginsAndEnds_commandStopsAndContinues() throws {
        let stage = try SessionctlStage()
        let (child, process) = try stage.guarded("Music", [], ["sleep", "60"])
        let client = try stage.daemon.client()
        let phone = try client.beginCall("Phone")
        #expect(eventually { SessionctlStage.isStopped(process) })
        #expect(child.line { $0.contains("interrupted by Phone") } != nil)
        client.deactivate(phone, notify: true)
        #expect(eventually { !SessionctlStage.isStopped(process) })
        #expect(try stage.session("Music")?["State"]?.stringValue == "active")
        child.signal(SIGINT)
        #expect(child.wait() == .code(130))
    }

    @Test func interruptionEndsWithoutResume_userContinues() throws {
        let stage = try SessionctlStage()
        let (child, process) = try stage.guarded("Music", [], ["sleep", "60"])
        let client = try stage.daemon.client()
        let other = try client.session("Other")
        client.activate(other)
        #expect(eventually { SessionctlStage.isStopped(process) })
        client.deactivate(other)
        #expect(child.line { $0.contains("kill -CONT \(process)") } != nil)
        #expect(SessionctlStage.isStopped(process))
        kill(process, SIGCONT)
        #expect(try eventually { try stage.session("Music")?["State"]?.stringValue == "active" })
        #expect(eventually { !SessionctlStage.isStopped(process) })
        // The deinitializer of `child` kills it.
        withExtendedLifetime(child) {}
    }

    /// The processor is busy, and the command gets it seldom: the kernel reports that it was continued only after the next
    /// interruption began. That must not look as if the user had continued it.
    @Test func interruptionsFollowEachOther_commandStaysStopped() throws {
        let stage = try SessionctlStage()
        let busy = try Child("taskset", ["-c", "0", "nice", "-n", "19", "sh", "-c", "while :; do :; done"])
        let (child, process) = try stage.guarded(
            "Music", [], ["taskset", "-c", "0", "chrt", "--idle", "0", "sh", "-c", "while :; do :; done"])
        defer { kill(process, SIGKILL) }
        let client = try stage.daemon.client()
        let phone = try client.session("Phone", category: "play-and-record", class: "call")
        let other = try client.session("Other")
        func hasContinued(_ count: Int) -> Bool {
            eventually {
                _ = child.line(timeout: 0) { _ in false }
                return child.errors.count { $0.hasSuffix("continues") } == count
            }
        }
        for round in 0..<10 {
            client.activate(phone)
            #expect(eventually { SessionctlStage.isStopped(process) })
            client.deactivate(phone, notify: true)
            #expect(hasContinued(2 * round + 1))
            client.activate(other)
            #expect(eventually { SessionctlStage.isStopped(process) })
            // The late report has come, too.
            usleep(50_000)
            #expect(SessionctlStage.isStopped(process))
            #expect(try stage.session("Music")?["State"]?.stringValue == "interrupted")
            client.deactivate(other, notify: true)
            #expect(hasContinued(2 * round + 2))
        }
        withExtendedLifetime((busy, child)) {}
    }

    @Test func userContinuesDuringACall_commandStaysStopped() throws {
        let stage = try SessionctlStage()
        let (child, process) = try stage.guarded("Take", ["--category", "record"], ["sleep", "60"])
        let client = try stage.daemon.client()
        try client.beginCall("Phone")
        #expect(eventually { SessionctlStage.isStopped(process) })
        kill(process, SIGCONT)
        #expect(child.line { $0.contains("stays stopped: 'Phone' (call) has priority") } != nil)
        #expect(eventually { SessionctlStage.isStopped(process) })
        // sessionctl continues a stopped command so that it can end.
        child.signal(SIGTERM)
        #expect(child.wait() == .code(143))
    }

    @Test func userStopsTheCommand_itsSessionIsDeactivated() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        let before = try client.session("Before")
        client.activate(before)
        let (child, process) = try stage.guarded("Music", [], ["sleep", "60"])
        kill(process, SIGSTOP)
        #expect(try eventually { try stage.session("Music")?["State"]?.stringValue == "inactive" })
        #expect(try eventually { try client.heard().contains("Before ended resume") })
        kill(process, SIGCONT)
        #expect(try eventually { try stage.session("Music")?["State"]?.stringValue == "active" })
        #expect(eventually { !SessionctlStage.isStopped(process) })
        // The deinitializer of `child` kills it.
        withExtendedLifetime(child) {}
    }

    @Test func daemonRestarts_sessionIsCreatedAgain() throws {
        let stage = try SessionctlStage()
        let (child, process) = try stage.guarded("Music", [], ["sleep", "60"])
        stage.daemon.daemon.kill()
        let next = try stage.daemon.start()
        #expect(
            try eventually { try stage.daemon.isServing && stage.session("Music")?["State"]?.stringValue == "active" })
        #expect(!SessionctlStage.isStopped(process))
        child.signal(SIGTERM)
        #expect(child.wait() == .code(143))
        next.kill()
    }

    /// The command is continued for a moment, so that it can react to the signal. If it goes on, it stops again until the
    /// interruption ends.
    @Test func commandIgnoresASignalDuringACall_itStopsAgainAndContinuesAfterwards() throws {
        let stage = try SessionctlStage()
        let (child, process) = try stage.guarded("Music", [], ["sh", "-c", "trap '' INT; echo deaf; exec sleep 60"])
        #expect(child.line { $0 == "deaf" } != nil)
        let client = try stage.daemon.client()
        let phone = try client.beginCall("Phone")
        #expect(eventually { SessionctlStage.isStopped(process) })
        child.signal(SIGINT)
        #expect(eventually { !SessionctlStage.isStopped(process) })
        #expect(eventually { SessionctlStage.isStopped(process) })
        #expect(try stage.session("Music")?["State"]?.stringValue == "interrupted")
        child.signal(SIGINT)
        #expect(eventually { !SessionctlStage.isStopped(process) })
        client.deactivate(phone, notify: true)
        #expect(try eventually { try stage.session("Music")?["State"]?.stringValue == "active" })
        usleep(1_300_000)
        #expect(!SessionctlStage.isStopped(process) && child.isRunning)
        child.signal(SIGTERM)
        #expect(child.wait() == .code(143))
    }

    @Test func busIsLostDuringACall_userContinuesTheCommand() throws {
        let stage = try SessionctlStage()
        let (child, process) = try stage.guarded("Music", [], ["sleep", "60"])
        let client = try stage.daemon.client()
        try client.beginCall("Phone")
        #expect(eventually { SessionctlStage.isStopped(process) })
        stage.daemon.bus.kill()
        #expect(child.line { $0.contains("kill -CONT \(process)") } != nil)
        kill(process, SIGCONT)
        usleep(300_000)
        #expect(!SessionctlStage.isStopped(process))
        // Without a session, it may also be stopped and continued.
        kill(process, SIGSTOP)
        usleep(100_000)
        kill(process, SIGCONT)
        usleep(300_000)
        #expect(!SessionctlStage.isStopped(process))
        child.signal(SIGTERM)
        #expect(child.wait() == .code(143))
    }
}
