"""Music files before and after a change of their tags: RetaggedFiles.py FOLDER.

ffmpeg makes two different sounds in each format. mutagen and ffmpeg change the tags of copies: long tags and a cover, no tags,
further tags of other kinds, and a new file with the same sound. The names are FORMAT/SOUND-CHANGE.ENDING; one a line is printed.
"""
import os
import shutil
import subprocess
import sys

import mutagen
from mutagen import apev2, flac, id3, mp4

FORMATS = {
    "mp3": ("mp3", ["-c:a", "libmp3lame", "-b:a", "96k"]), "mp3-vbr": ("mp3", ["-c:a", "libmp3lame", "-q:a", "4"]),
    "mp3-plain": ("mp3", ["-c:a", "libmp3lame", "-write_xing", "0"]), "mp2": ("mp2", ["-c:a", "mp2"]),
    "aac": ("aac", ["-c:a", "aac"]), "flac": ("flac", []), "vorbis": ("ogg", ["-c:a", "libvorbis"]),
    "opus": ("opus", ["-c:a", "libopus"]), "speex": ("spx", ["-c:a", "libspeex", "-ar", "16000"]),
    "ogg-flac": ("oga", ["-c:a", "flac", "-f", "ogg"]), "m4a": ("m4a", ["-c:a", "aac"]), "alac": ("m4a", ["-c:a", "alac"]),
    "m4a-fragments": ("m4a", ["-c:a", "aac", "-movflags", "frag_keyframe+empty_moov", "-frag_duration", "1000000"]),
    "wav": ("wav", []), "rf64": ("wav", ["-rf64", "always"]), "aiff": ("aiff", []), "wma": ("wma", ["-c:a", "wmav2"]),
    "wavpack": ("wv", ["-c:a", "wavpack"]), "tta": ("tta", ["-c:a", "tta"]),
}
PICTURE = bytes.fromhex("89504e470d0a1a0a") + bytes(range(256)) * 700
LONG = "A new and much longer title " * 30


def ffmpeg(*words):
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *words], check=True)


def tag(path, title):
    audio = mutagen.File(path)
    if audio.tags is None:
        audio.add_tags()
    if isinstance(audio.tags, id3.ID3):
        audio.tags.add(id3.TIT2(encoding=3, text=title))
        audio.tags.add(id3.APIC(encoding=0, mime="image/png", type=3, desc="cover", data=PICTURE))
    elif isinstance(audio.tags, mp4.MP4Tags):
        audio.tags["\xa9nam"] = [title]
        audio.tags["covr"] = [mp4.MP4Cover(PICTURE, mp4.MP4Cover.FORMAT_PNG)]
    else:
        audio.tags["Title"] = [title]
        if isinstance(audio, flac.FLAC):
            picture = flac.Picture()
            picture.data, picture.type, picture.mime = PICTURE, 3, "image/png"
            audio.add_picture(picture)
        elif isinstance(audio.tags, apev2.APEv2):
            audio.tags["Cover Art (Front)"] = apev2.APEValue(b"a.png\0" + PICTURE, apev2.BINARY)
        elif not path.endswith("wma"):
            audio.tags["COMMENT"] = [LONG * 200]
    audio.save()


for name, (ending, options) in FORMATS.items():
    folder = os.path.join(sys.argv[1], name)
    os.makedirs(folder)
    for sound, seed in (("a", 1), ("b", 2)):
        base = f"{folder}/{sound}-0.{ending}"
        noise = f"anoisesrc=d=4:a=0.3:c=pink:seed={seed},aresample=44100"
        ffmpeg("-f", "lavfi", "-i", noise, "-ac", "2", *options, "-metadata", "title=Old", base)
        copies = [base]

        def copy(change):
            copies.append(f"{folder}/{sound}-{change}.{ending}")
            shutil.copy(base, copies[-1])
            return copies[-1]

        # mutagen reads no tags of MPEG layer 2 and ADTS by itself: they are those of MP3.
        if name == "rf64":
            pass  # mutagen does not read it
        elif name in ("aac", "mp2"):
            id3.ID3().save(copy("tags"))
            tags = id3.ID3()
            tags.add(id3.TIT2(encoding=3, text=LONG))
            tags.save(copies[-1], v1=2)
        else:
            tag(copy("tags"), LONG)
            cleared = mutagen.File(copy("none"))
            if cleared.tags is not None:
                cleared.delete()
        if ending in ("mp3", "mp2", "aac", "flac", "wv", "tta"):
            tags = apev2.APEv2()
            tags["Title"] = LONG
            tags.save(copy("ape"))
            with open(copies[-1], "ab") as file:
                file.write(b"TAG" + b"x" * 125)
        if ending == "mp3":
            with open(copy("lyrics"), "ab") as file:
                words = b"LYRICSBEGININD00003110LYR00005abcde"
                file.write(words + b"%06dLYRICS200" % len(words) + b"TAG" + b"x" * 125)
        written = f"{folder}/{sound}-new.{ending}"
        # The options of the container.
        kept = [*options[options.index("-c:a") + 2:]] if "-c:a" in options else options
        kept = [] if ending in ("spx",) or name in ("mp3", "mp3-vbr") else kept
        ffmpeg("-i", base, "-c", "copy", *kept, "-metadata", "title=" + LONG, "-metadata", "artist=Somebody", written)
        copies.append(written)
        if name in ("m4a", "alac"):
            ffmpeg("-i", base, "-c", "copy", "-movflags", "+faststart", copy("front"))
        for path in copies:
            print(os.path.relpath(path, sys.argv[1]))
