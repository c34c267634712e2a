"""Music files with tags of many kinds, and what mutagen, another reader, finds in them: TagCorpus.py FOLDER SEED.

ffmpeg makes one short file of each format; mutagen writes tags into copies, and reads them. Each line of the output is the
JSON of a file: its name, its tags by the names of Vorbis comments, and its duration in seconds.
"""
import json
import os
import random
import shutil
import subprocess
import sys

import mutagen
from mutagen import aiff, apev2, asf, flac, id3, mp3, mp4, oggflac, oggopus, oggspeex, oggvorbis, wave, wavpack

folder, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
os.makedirs(folder, exist_ok=True)

BASES = {
    "mp3": ["-c:a", "libmp3lame"], "flac": [], "ogg": ["-c:a", "libvorbis"], "opus": ["-c:a", "libopus"],
    "spx": ["-c:a", "libspeex", "-ar", "16000"], "oga": ["-c:a", "flac", "-f", "ogg"], "m4a": ["-c:a", "aac"], "wav": [],
    "aiff": [], "wma": ["-c:a", "wmav2"], "wv": ["-c:a", "wavpack"],
}
PIECES = ["Björk", "AC/DC", "Sigur Rós", "東京事変", "Ёлка", "O'Brien & Sons", "a", "The", "  x ", "ﬁn", "𝄞", "N°1", "naïve",
          "IV", "(Live)", "Ünïcödé", "x" * 300, "İstanbul", "e\u0301te\u0301"]
TEXTS = ["TITLE", "ARTIST", "ALBUM", "ALBUMARTIST", "COMPOSER", "GENRE"]
PICTURE = bytes.fromhex("89504e470d0a1a0a") + bytes(range(256)) * 30


def words(latin=False):
    text = " ".join(chance.choice(PIECES) for _ in range(chance.randint(1, 4))).strip()
    return text.encode("latin-1", "replace").decode("latin-1") if latin else text


def values():
    tags = {}
    for name in TEXTS:
        if chance.random() < 0.8:
            many = chance.randint(1, 3) if name in ("ARTIST", "GENRE", "COMPOSER") else 1
            tags[name] = list(dict.fromkeys(words() for _ in range(many)))
    if chance.random() < 0.8:
        tags["TRACKNUMBER"] = [f"{chance.randint(1, 99)}" + chance.choice(["", "/12"])]
    if chance.random() < 0.5:
        tags["DISCNUMBER"] = [str(chance.randint(1, 9))]
    if chance.random() < 0.8:
        tags["DATE"] = [chance.choice(["1973", "1973-10-24", "2004-02"])]
    if chance.random() < 0.3:
        tags["COMPILATION"] = ["1"]
    if chance.random() < 0.3:
        tags["MUSICBRAINZ_ALBUMID"] = ["f205627f-b70a-409d-adbe-66289b614e80"]
    return tags


ID3_NAMES = {"TITLE": "TIT2", "ARTIST": "TPE1", "ALBUM": "TALB", "ALBUMARTIST": "TPE2", "COMPOSER": "TCOM", "GENRE": "TCON",
             "TRACKNUMBER": "TRCK", "DISCNUMBER": "TPOS", "DATE": "TDRC", "COMPILATION": "TCMP"}
MP4_NAMES = {"TITLE": "\xa9nam", "ARTIST": "\xa9ART", "ALBUM": "\xa9alb", "ALBUMARTIST": "aART", "COMPOSER": "\xa9wrt",
             "GENRE": "\xa9gen", "DATE": "\xa9day"}
ASF_NAMES = {"TITLE": "Title", "ARTIST": "Author", "ALBUM": "WM/AlbumTitle", "ALBUMARTIST": "WM/AlbumArtist",
             "COMPOSER": "WM/Composer", "GENRE": "WM/Genre", "TRACKNUMBER": "WM/TrackNumber", "DISCNUMBER": "WM/PartOfSet",
             "DATE": "WM/Year"}


def write_id3(audio, tags, version):
    if audio.tags is None:
        audio.add_tags()
    for name, texts in tags.items():
        encoding = chance.choice([1, 3] if version == 4 else [1])
        if all(ord(c) < 256 for text in texts for c in text) and chance.random() < 0.5:
            encoding = 0
        if version == 3 and len(texts) > 1:
            # Version 2.3 has one text in a frame.
            texts = texts[:1]
        if name == "MUSICBRAINZ_ALBUMID":
            audio.tags.add(id3.TXXX(encoding=encoding, desc="MusicBrainz Album Id", text=texts))
        else:
            audio.tags.add(getattr(id3, ID3_NAMES[name])(encoding=encoding, text=texts))
    if chance.random() < 0.3:
        audio.tags.add(id3.APIC(encoding=chance.choice([0, 1]), mime="image/png", type=3, desc="cover", data=PICTURE))
    if version == 3:
        audio.tags.update_to_v23()
    audio.save(v2_version=version)


def read_id3(tags):
    found = {}
    for name, frame in ID3_NAMES.items():
        for frame in tags.getall(frame):
            found[name] = [str(text) for text in (frame.genres if name == "GENRE" else frame.text)]
    for frame in tags.getall("TYER"):
        found.setdefault("DATE", [str(text) for text in frame.text])
    for frame in tags.getall("TXXX:MusicBrainz Album Id"):
        found["MUSICBRAINZ_ALBUMID"] = list(frame.text)
    return found, bool(tags.getall("APIC"))


def write_vorbis(audio, tags):
    for name, texts in tags.items():
        audio[name if chance.random() < 0.5 else name.lower()] = texts
    if chance.random() < 0.3:
        picture = flac.Picture()
        picture.data, picture.type, picture.mime = PICTURE, 3, "image/png"
        if isinstance(audio, flac.FLAC):
            audio.add_picture(picture)
        else:
            import base64
            audio["METADATA_BLOCK_PICTURE"] = base64.b64encode(picture.write()).decode()
    audio.save()


def read_vorbis(audio):
    found = {key.upper(): list(texts) for key, texts in audio.tags.as_dict().items()}
    has = bool(found.pop("METADATA_BLOCK_PICTURE", None)) or bool(getattr(audio, "pictures", None))
    return {key: texts for key, texts in found.items() if key in ID3_NAMES or key == "MUSICBRAINZ_ALBUMID"}, has


def write_mp4(audio, tags):
    for name, texts in tags.items():
        if name in MP4_NAMES:
            audio[MP4_NAMES[name]] = texts
        elif name in ("TRACKNUMBER", "DISCNUMBER"):
            parts = [int(part) for part in texts[0].split("/")]
            audio["trkn" if name == "TRACKNUMBER" else "disk"] = [(parts[0], parts[1] if len(parts) > 1 else 0)]
        elif name == "COMPILATION":
            audio["cpil"] = True
        else:
            audio["----:com.apple.iTunes:MusicBrainz Album Id"] = [texts[0].encode()]
    if chance.random() < 0.3:
        audio["covr"] = [mp4.MP4Cover(PICTURE, mp4.MP4Cover.FORMAT_PNG)]
    if chance.random() < 0.2:
        audio["stik"] = [chance.choice([2, 21])]
    audio.save()


def read_mp4(audio):
    found = {name: list(audio.tags[atom]) for name, atom in MP4_NAMES.items() if atom in audio.tags}
    for name, atom in (("TRACKNUMBER", "trkn"), ("DISCNUMBER", "disk")):
        if atom in audio.tags:
            number, total = audio.tags[atom][0]
            found[name] = [f"{number}/{total}" if total else str(number)]
    if "cpil" in audio.tags:
        found["COMPILATION"] = ["1" if audio.tags["cpil"] else "0"]
    if "stik" in audio.tags:
        found["STIK"] = [str(audio.tags["stik"][0])]
    key = "----:com.apple.iTunes:MusicBrainz Album Id"
    if key in audio.tags:
        found["MUSICBRAINZ_ALBUMID"] = [bytes(audio.tags[key][0]).decode()]
    return found, "covr" in audio.tags


def plain(found):
    """As a reader that removes spaces around texts, and texts that are there twice."""
    result = {}
    for name, texts in found.items():
        kept = list(dict.fromkeys(text.strip("".join(map(chr, range(33)))) for text in texts))
        if any(kept):
            result[name] = [text for text in kept if text]
    return result


def bases():
    made = []
    for ending, options in BASES.items():
        path = f"{folder}/.base.{ending}"
        command = ["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "sine=frequency=440:duration=1.5",
                   "-map_metadata", "-1", "-fflags", "+bitexact", *options, path]
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0 and os.path.getsize(path):
            made.append(ending)
    return made


count = 0
for ending in bases():
    for number in range(int(sys.argv[3]) if len(sys.argv) > 3 else 12):
        path = f"{folder}/{number:03}.{ending}"
        shutil.copy(f"{folder}/.base.{ending}", path)
        tags = values()
        if ending in ("mp3", "wav", "aiff"):
            kind = {"mp3": mp3.MP3, "wav": wave.WAVE, "aiff": aiff.AIFF}[ending]
            write_id3(kind(path), tags, chance.choice([3, 4]))
            audio = kind(path)
            found, has_picture = read_id3(audio.tags)
            if ending == "mp3" and chance.random() < 0.3:
                # An APE tag behind: ID3 is believed.
                ape = apev2.APEv2()
                ape["Title"] = "of APE"
                ape.save(path)
                found.setdefault("TITLE", ["of APE"])
        elif ending in ("flac", "ogg", "opus", "spx", "oga"):
            kind = {"flac": flac.FLAC, "ogg": oggvorbis.OggVorbis, "opus": oggopus.OggOpus, "spx": oggspeex.OggSpeex,
                    "oga": oggflac.OggFLAC}[ending]
            audio = kind(path)
            if audio.tags is None:
                audio.add_tags()
            for key in list(audio.tags.keys()):
                del audio[key]
            write_vorbis(audio, tags)
            audio = kind(path)
            found, has_picture = read_vorbis(audio)
        elif ending == "m4a":
            write_mp4(mp4.MP4(path), tags)
            audio = mp4.MP4(path)
            found, has_picture = read_mp4(audio)
        elif ending == "wma":
            audio = asf.ASF(path)
            for name, texts in tags.items():
                if name in ASF_NAMES:
                    audio[ASF_NAMES[name]] = texts
            audio.save()
            audio = asf.ASF(path)
            found = {name: [str(text) for text in audio.tags[key]] for name, key in ASF_NAMES.items() if key in audio.tags}
            has_picture = False
        else:
            audio = wavpack.WavPack(path)
            if audio.tags is None:
                audio.add_tags()
            for name, texts in tags.items():
                key = {"TRACKNUMBER": "Track", "DISCNUMBER": "Disc", "DATE": "Year", "ALBUMARTIST": "Album Artist"}.get(name, name)
                audio[key] = texts
            audio.save()
            audio = wavpack.WavPack(path)
            back = {"TRACK": "TRACKNUMBER", "DISC": "DISCNUMBER", "YEAR": "DATE", "ALBUM ARTIST": "ALBUMARTIST"}
            found = {back.get(key.upper(), key.upper()): list(value) for key, value in audio.tags.items()}
            has_picture = False
        print(json.dumps({"file": os.path.basename(path), "tags": plain(found), "picture": has_picture,
                          "duration": audio.info.length}))
        count += 1
