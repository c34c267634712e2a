import Testing

@testable import MediaLibrary

@Suite struct WalkRulesTests {
    private func place(_ inode: UInt64) -> WalkRules.Place { WalkRules.Place(device: 1, inode: inode) }

    @Test func folderThroughLinks_isEnteredOnce() {
        var rules = WalkRules(above: [place(1)])
        rules.begin(place(2))
        let inodes: [UInt64] = [3, 3, 2, 1, 4]
        let entered = inodes.map { rules.enters(place($0), isThroughLink: true) }
        #expect(entered == [true, false, false, false, true])
        // What is there without a link is always entered: some file systems give two folders one number.
        let isEntered = rules.enters(place(3), isThroughLink: false)
        #expect(isEntered)
        #expect(!rules.isFull)
    }

    @Test func tooManyFolders_areLeftOutAndReported() {
        var limits = WalkRules.Limits()
        (limits.all, limits.linked) = (5, 2)
        var rules = WalkRules(limits)
        let linked = (1...4).map { rules.enters(place($0), isThroughLink: true) }
        #expect(linked == [true, true, false, false])
        #expect(rules.isFull)
        let others = (5...8).map { rules.enters(place($0), isThroughLink: false) }
        #expect(others == [true, true, true, false])
    }

    @Test(arguments: [
        ("/m", false), ("/m/a", false), ("/", false), ("/m2", true), ("/x/m", true), ("/proc", true),
    ]) func link_isFollowedOutOfTheFolder(_ target: String, _ isFollowed: Bool) {
        #expect(WalkRules.mayFollow(to: target, from: "/m") == isFollowed)
        #expect(WalkRules.mayFollow(to: "/home", from: "/home/ada/Music") == false)
    }

    @Test func fileSystemsOfTheKernel_haveNoMusic() {
        for type in ["proc", "sysfs", "devtmpfs", "cgroup2"] { #expect(!WalkRules.mayHoldMusic(type)) }
        for type in ["ext4", "nfs4", "autofs", "fuse.sshfs", "tmpfs", ""] { #expect(WalkRules.mayHoldMusic(type)) }
    }
}
