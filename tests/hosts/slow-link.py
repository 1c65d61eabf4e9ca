"""Holds every packet of netfilter queue 1 for a time, and drops some: netem for kernels without it.

Usage: slow-link.py MILLISECONDS PROBABILITY. Writes a line when the queue is bound.
"""
import collections
import os
import random
import select
import socket
import struct
import sys
import time

NETLINK_NETFILTER, SOL_NETLINK, NETLINK_NO_ENOBUFS, SO_RCVBUFFORCE = 12, 270, 5, 33
PACKET, VERDICT, CONFIG = 3 << 8, 3 << 8 | 1, 3 << 8 | 2
ACCEPT, DROP = 1, 0
QUEUE = 1
delay, loss = float(sys.argv[1]) / 1000, float(sys.argv[2])

queue = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
queue.bind((os.getpid(), 0))
queue.setsockopt(SOL_NETLINK, NETLINK_NO_ENOBUFS, 1)
queue.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)


def send(kind, attribute, body):
    attribute = struct.pack("=HH", 4 + len(body), attribute) + body
    attribute += b"\0" * (-len(attribute) % 4)
    message = struct.pack("=BBH", 0, 0, socket.htons(QUEUE)) + attribute
    queue.send(struct.pack("=IHHII", 16 + len(message), kind, 1, 0, 0) + message)


send(CONFIG, 1, struct.pack("!BBH", 1, 0, 0))  # bind the queue
send(CONFIG, 2, struct.pack("!IB", 0, 1))  # packets without their contents
send(CONFIG, 3, struct.pack("!I", 65535))  # longest queue
print("bound", flush=True)

held = collections.deque()
while True:
    wait = max(0, held[0][0] - time.monotonic()) if held else None
    if select.select([queue], [], [], wait)[0]:
        data, at = queue.recv(1 << 20), 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            part = at + 20
            while kind == PACKET and part + 4 <= at + length:
                size, name = struct.unpack_from("=HH", data, part)
                if name == 1:
                    number = struct.unpack_from("!I", data, part + 4)[0]
                    if random.random() < loss:
                        send(VERDICT, 2, struct.pack("!II", DROP, number))
                    else:
                        held.append((time.monotonic() + delay, number))
                part += (size + 3) & ~3
            at += (length + 3) & ~3
    while held and held[0][0] <= time.monotonic():
        send(VERDICT, 2, struct.pack("!II", ACCEPT, held.popleft()[1]))
