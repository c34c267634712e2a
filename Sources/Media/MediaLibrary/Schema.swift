/// The tables. The content of `main` can be read from the music files again; everything else is in the database `kept`.
enum Schema {
    /// Increased with each change of the tables. `upgrade` changes the tables of earlier versions; an index of an unknown
    /// version is created again.
    static let version: Int64 = 5
    static let keptVersion: Int64 = 2

    static let main = """
        CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
        CREATE TABLE directory(
            id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, parent INTEGER NOT NULL DEFAULT 0,
            is_mount INTEGER NOT NULL DEFAULT 0, digest INTEGER NOT NULL DEFAULT 0,
            is_available INTEGER NOT NULL DEFAULT 1, is_watchable INTEGER NOT NULL DEFAULT 1);
        CREATE INDEX directory_parent ON directory(parent);
        -- state: 0 tags not read, 1 read, 2 failed. fingerprint: of the content that was read; NULL: it has changed since.
        -- sound: a fingerprint of the sound as it was last read, without the tags.
        CREATE TABLE file(
            id INTEGER PRIMARY KEY AUTOINCREMENT, directory INTEGER NOT NULL, name BLOB NOT NULL,
            inode INTEGER NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0,
            is_gone INTEGER NOT NULL DEFAULT 0, error TEXT, fingerprint INTEGER, sound INTEGER,
            UNIQUE(directory, name));
        CREATE INDEX file_identity ON file(inode, size);
        CREATE INDEX file_pending ON file(id) WHERE state = 0 AND is_gone = 0;
        CREATE INDEX file_gone ON file(size) WHERE is_gone = 1;
        \(soundIndexes)
        CREATE TABLE album(
            id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, title TEXT NOT NULL, title_sort TEXT NOT NULL,
            artist TEXT NOT NULL, artist_sort TEXT NOT NULL, words TEXT NOT NULL);
        CREATE TABLE name(
            id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, sort TEXT NOT NULL);
        CREATE TABLE track(
            id INTEGER PRIMARY KEY, media_type INTEGER NOT NULL, is_available INTEGER NOT NULL DEFAULT 1,
            title TEXT NOT NULL, title_key TEXT NOT NULL, title_sort TEXT NOT NULL,
            artist TEXT NOT NULL, artist_key TEXT NOT NULL, artist_sort TEXT NOT NULL,
            album INTEGER NOT NULL DEFAULT 0, album_title TEXT NOT NULL, album_key TEXT NOT NULL, album_sort TEXT NOT NULL,
            album_artist TEXT NOT NULL, album_artist_key TEXT NOT NULL, album_artist_sort TEXT NOT NULL,
            composer TEXT NOT NULL, composer_key TEXT NOT NULL, genre TEXT NOT NULL, genre_key TEXT NOT NULL,
            disc INTEGER NOT NULL, number INTEGER NOT NULL, released INTEGER NOT NULL, duration REAL NOT NULL,
            is_compilation INTEGER NOT NULL, has_picture INTEGER NOT NULL, own_type INTEGER NOT NULL,
            added INTEGER NOT NULL);
        \(songsIndex)
        CREATE INDEX track_albums ON track(
            is_available, media_type, album_artist_sort, released, album_sort, album, disc, number, title_sort, id);
        CREATE INDEX track_artists ON track(
            is_available, media_type, artist_sort, album_sort, album, disc, number, title_sort, id);
        -- With what is counted of an album.
        CREATE INDEX track_album ON track(
            album, is_available, media_type, duration, released, added, has_picture);
        -- role: 0 artist, 1 album artist, 2 composer, 3 genre.
        CREATE TABLE track_name(
            role INTEGER NOT NULL, name INTEGER NOT NULL, track INTEGER NOT NULL, PRIMARY KEY(role, name, track)
        ) WITHOUT ROWID;
        CREATE INDEX track_name_track ON track_name(track);
        CREATE TABLE list(
            id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL UNIQUE, name TEXT NOT NULL);
        CREATE TABLE list_item(
            list INTEGER NOT NULL, position INTEGER NOT NULL, directory BLOB NOT NULL, name BLOB NOT NULL,
            PRIMARY KEY(list, position)) WITHOUT ROWID;
        -- rowid: the kind of what is found (Store.Kind) times 2^40, and its id.
        CREATE VIRTUAL TABLE words USING fts5(
            title, artist, album, more, content='', columnsize=0, prefix='2 3',
            tokenize="unicode61 remove_diacritics 0");
        CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row);
        """

    static let kept = """
        CREATE TABLE kept.meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
        CREATE TABLE kept.folder(path BLOB PRIMARY KEY, media_type INTEGER, is_watched INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE kept.item(
            id INTEGER PRIMARY KEY, path BLOB NOT NULL, fingerprint INTEGER, size INTEGER NOT NULL,
            plays INTEGER NOT NULL DEFAULT 0, skips INTEGER NOT NULL DEFAULT 0, played INTEGER NOT NULL DEFAULT 0,
            rating INTEGER NOT NULL DEFAULT 0, bookmark REAL NOT NULL DEFAULT 0, media_type INTEGER, sound INTEGER);
        CREATE INDEX kept.item_path ON item(path);
        CREATE INDEX kept.item_sound ON item(sound);
        CREATE INDEX kept.item_fingerprint ON item(fingerprint);
        CREATE TABLE kept.playlist(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL);
        CREATE TABLE kept.playlist_item(
            playlist INTEGER NOT NULL, position INTEGER NOT NULL, item INTEGER NOT NULL,
            PRIMARY KEY(playlist, position)) WITHOUT ROWID;
        """

    /// The changes from a version to the next one.
    ///
    /// An item was known by the size and both ends of its file, and is now known by its sound: the next scan reads all
    /// files again.
    private static let mainUpgrades: [Int64: String] = [
        2: """
        ALTER TABLE file ADD COLUMN sound INTEGER;
        CREATE INDEX file_sound ON file(sound);
        UPDATE file SET state = 0 WHERE state = 1;
        PRAGMA user_version = 3;
        """,
        3: """
        DROP INDEX file_sound;
        \(soundIndexes)
        PRAGMA user_version = 4;
        """,
        4: """
        DROP INDEX track_songs;
        \(songsIndex)
        PRAGMA user_version = 5;
        """,
    ]
    private static let keptUpgrades: [Int64: String] = [
        1: """
        ALTER TABLE item ADD COLUMN sound INTEGER;
        CREATE INDEX item_sound ON item(sound);
        PRAGMA user_version = 2;
        """
    ]

    /// With the text in which parts of titles are looked for, so that such a query reads only this index.
    private static let songsIndex = """
        CREATE INDEX track_songs ON track(is_available, media_type, title_sort, id, title_key);
        """

    /// Only the files that another file may be: of thousands with one sound, such as silence, few are missing or changed.
    private static let soundIndexes = """
        CREATE INDEX file_gone_sound ON file(sound) WHERE is_gone = 1;
        CREATE INDEX file_changed_sound ON file(sound)
            WHERE state = 0 AND fingerprint IS NULL AND is_gone = 0 AND sound IS NOT NULL;
        """

    /// Changes the tables of an earlier version to those of this version, as far as that version is known.
    static func upgrade(_ db: SQLite, ofIndex isIndex: Bool) throws(SQLError) {
        while let changes = (isIndex ? mainUpgrades : keptUpgrades)[try db.number("PRAGMA user_version") ?? 0] {
            try db.transaction { () throws(SQLError) in try db.script(changes) }
        }
    }

    /// The user's playlists and those of files in one table. The ids of the latter start at 2^40.
    static let views = """
        CREATE TEMP VIEW any_list AS
            SELECT id, name FROM kept.playlist UNION ALL SELECT id + 1099511627776, name FROM main.list;
        CREATE TEMP VIEW any_list_item AS
            SELECT playlist, position, item FROM kept.playlist_item
            UNION ALL
            SELECT i.list + 1099511627776, i.position, f.id FROM main.list_item i
                JOIN main.directory d ON d.path = i.directory
                JOIN main.file f ON f.directory = d.id AND f.name = i.name;
        """

    // MARK: Checks of a database

    /// Whether all tables exist with all their columns.
    static func hasTables(_ db: SQLite, ofIndex isIndex: Bool) throws(SQLError) -> Bool {
        let model = try SQLite(":memory:")
        if isIndex {
            try model.script(main)
        } else {
            try model.run("ATTACH ':memory:' AS kept")
            try model.script(kept)
        }
        return try columns(db, "main").isSuperset(of: columns(model, isIndex ? "main" : "kept"))
    }

    /// Internal tables of the full-text index are left out: they depend on the version of SQLite.
    private static func columns(_ db: SQLite, _ name: String) throws(SQLError) -> Set<String> {
        Set(
            try db.all(
                """
                SELECT t.name || '.' || c.name FROM \(name).sqlite_master t, pragma_table_info(t.name, '\(name)') c
                WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite!_%' ESCAPE '!' AND t.name NOT LIKE 'words!_%' ESCAPE '!'
                """
            ) { $0.text(0) })
    }
}
