#!/usr/bin/env python3
"""A UPnP client on the loopback interface: prints what a media server shows, as JSON.

    UPnPClient.py NAME FOLDER

NAME is the name of the server. All music that it offers is downloaded to FOLDER.
"""
import json
import re
import socket
import sys
import time
import urllib.parse
import urllib.request
from xml.etree import ElementTree
from xml.sax.saxutils import escape

LOOPBACK = "127.0.0.1"
SERVICE = "urn:schemas-upnp-org:service:ContentDirectory"
LITE = "{urn:schemas-upnp-org:metadata-1-0/DIDL-Lite/}"


def local(tag):
    return tag.rsplit("}", 1)[-1]


def child(element, name):
    return next((each.text or "" for each in element if local(each.tag) == name), "")


def descriptions():
    """The addresses of the descriptions of all media servers that answer within half a second."""
    question = "M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\nST: ssdp:all\r\n\r\n"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
        client.bind((LOOPBACK, 0))
        # Where the loopback interface has no multicast, the server hears it directly.
        for target in ("239.255.255.250", LOOPBACK):
            try:
                client.sendto(question.encode(), (target, 1900))
            except OSError:
                pass
        end = time.monotonic() + 1.5
        while (left := end - time.monotonic()) > 0:
            client.settimeout(left)
            try:
                answer = client.recv(9000).decode(errors="replace")
            except OSError:
                return
            location = re.search(r"^location:\s*(\S+)", answer, re.I | re.M)
            if location:
                yield location.group(1)


def control(name):
    """The address at which the contents of the server of that name are requested."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for location in set(descriptions()):
            with urllib.request.urlopen(location, timeout=10) as answer:
                description = ElementTree.parse(answer).getroot()
            names = [each.text for each in description.iter() if local(each.tag) == "friendlyName"]
            for service in description.iter():
                if local(service.tag) == "service" and child(service, "serviceType").startswith(SERVICE):
                    if name in names:
                        return urllib.parse.urljoin(location, child(service, "controlURL")), child(service, "serviceType")
    sys.exit(f"no media server '{name}'")


def browse(address, service, container):
    """The entries of a container."""
    arguments = {
        "ObjectID": container, "BrowseFlag": "BrowseDirectChildren", "Filter": "*", "StartingIndex": 0,
        "RequestedCount": 0, "SortCriteria": "",
    }
    inner = "".join(f"<{key}>{escape(str(value))}</{key}>" for key, value in arguments.items())
    body = (
        '<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" '
        's:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>'
        f'<u:Browse xmlns:u="{service}">{inner}</u:Browse></s:Body></s:Envelope>'
    )
    request = urllib.request.Request(
        address, body.encode(), {"Content-Type": 'text/xml; charset="utf-8"', "SOAPACTION": f'"{service}#Browse"'})
    with urllib.request.urlopen(request, timeout=60) as answer:
        result = next(each.text for each in ElementTree.parse(answer).iter() if local(each.tag) == "Result")
    return ElementTree.fromstring(result)


def show(address, service, container, path, folder, found):
    for entry in browse(address, service, container):
        place = path + [child(entry, "title")]
        if entry.tag == LITE + "container":
            found["containers"].append(place)
            show(address, service, entry.get("id"), place, folder, found)
        elif entry.tag == LITE + "item":
            source = next(each.text for each in entry if each.tag == LITE + "res")
            target = f"{folder}/{len(found['items'])}"
            with urllib.request.urlopen(source, timeout=60) as answer, open(target, "wb") as copy:
                copy.write(answer.read())
            found["items"].append(
                {"path": place, "artist": child(entry, "artist"), "album": child(entry, "album"), "file": target})


def main():
    name, folder = sys.argv[1:]
    address, service = control(name)
    found = {"containers": [], "items": []}
    show(address, service, "0", [], folder, found)
    json.dump(found, sys.stdout, ensure_ascii=False)


main()
