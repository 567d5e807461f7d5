#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shared library from Python, by ctypes: nothing but the exported functions and the layouts.

    abi_ctypes.py LIBRARY

Adopts a value, makes it resident on a simulated device, borrows it there and on the host from
several Python threads, reads its bytes, and ends everything.
"""
import ctypes
import sys
import threading
from ctypes import POINTER, Structure, byref, c_char_p, c_size_t, c_uint32, c_uint64, c_void_p

TN_OK, TN_ERR_IN_USE, TN_ERR_LIFETIME_CLOSED = 0, 8, 9
NONE, PAGEABLE, CUDA = 0, 1, 3
REPLICABLE, CONCURRENT = 1, 1
BYTES, THREADS, ROUNDS = 4096, 4, 200


class Location(Structure):
    _fields_ = [("kind", c_uint32), ("index", c_uint32)]


class Handle(Structure):
    _fields_ = [("manager", c_uint64), ("index", c_uint64), ("type", c_void_p)]


class Payload(Structure):
    _fields_ = [("type", c_void_p), ("data", c_void_p)]


class Segment(Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_uint64)]


class Lease(Structure):
    _fields_ = [("record", c_void_p), ("generation", c_uint64)]


class Budget(Structure):
    _fields_ = [("at", Location), ("bytes", c_uint64)]


class Config(Structure):
    _fields_ = [
        ("size", c_size_t), ("driver", c_void_p), ("budgets", POINTER(Budget)),
        ("budget_count", c_size_t), ("mode", c_uint32), ("reaper", c_uint32),
        ("trace_capacity", c_uint64), ("keep_discarded", c_uint64), ("diagnostic", c_void_p),
        ("diagnostic_context", c_void_p), ("now_ns", c_void_p), ("now_context", c_void_p),
    ]


SIGNATURES = {  # name: (result, arguments)
    "tn_status_name": (c_char_p, [c_uint32]),
    "tn_sim_create": (c_uint32, [c_char_p, POINTER(c_void_p)]),
    "tn_sim_destroy": (None, [c_void_p]),
    "tn_sim_driver": (c_void_p, [c_void_p]),
    "tn_sim_stream_create": (c_uint32, [c_void_p, c_uint32, c_uint32, POINTER(c_void_p)]),
    "tn_sim_stream_destroy": (c_uint32, [c_void_p, c_void_p]),
    "tn_manager_create": (c_uint32, [POINTER(Config), POINTER(c_void_p)]),
    "tn_manager_close": (c_uint32, [c_void_p, c_uint32]),
    "tn_manager_destroy": (c_uint32, [c_void_p]),
    "tn_manager_adopt": (c_uint32, [c_void_p, Payload, Location, c_uint32, POINTER(Handle)]),
    "tn_manager_ensure": (c_uint32, [c_void_p, Handle, Location, c_void_p, c_void_p]),
    "tn_manager_acquire": (c_uint32, [c_void_p, POINTER(Handle), c_size_t, Location, c_void_p,
                                      POINTER(Lease)]),
    "tn_lease_lookup": (c_uint32, [POINTER(Lease), Handle, POINTER(c_void_p)]),
    "tn_lease_release": (c_uint32, [POINTER(Lease), c_uint32]),
    "tn_buffer_create": (c_uint32, [c_void_p, Location, POINTER(c_uint64), c_size_t,
                                    POINTER(c_void_p)]),
    "tn_buffer_payload": (Payload, [c_void_p]),
    "tn_buffer_segment": (Segment, [c_void_p, c_size_t]),
}


def load(path):
    library = ctypes.CDLL(path)
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Session:
    """A simulated machine with one device, a manager on it, and one value."""

    def __init__(self, library):
        self.tn = library
        self.sim, self.manager, self.stream = c_void_p(), c_void_p(), c_void_p()
        self.content = bytes((i * 7 + 3) & 0xFF for i in range(BYTES))
        self.need(self.tn.tn_sim_create(b"dev:1 mem=1MiB", byref(self.sim)))
        self.driver = self.tn.tn_sim_driver(self.sim)
        budget = Budget(Location(CUDA, 0), 2 * BYTES)
        config = Config(size=ctypes.sizeof(Config), driver=self.driver,
                        budgets=ctypes.pointer(budget), budget_count=1, mode=CONCURRENT)
        self.need(self.tn.tn_manager_create(byref(config), byref(self.manager)))
        self.need(self.tn.tn_sim_stream_create(self.sim, 0, 0, byref(self.stream)))
        self.handle = self.adopt()
        self.need(self.tn.tn_manager_ensure(self.manager, self.handle, Location(CUDA, 0), None, None))

    def need(self, status, wanted=TN_OK):
        if status != wanted:
            name = self.tn.tn_status_name
            raise AssertionError(f"{name(status).decode()} instead of {name(wanted).decode()}")

    def adopt(self):
        buffer, handle = c_void_p(), Handle()
        self.need(self.tn.tn_buffer_create(self.driver, Location(PAGEABLE, 0), byref(c_uint64(BYTES)),
                                           1, byref(buffer)))
        ctypes.memmove(self.tn.tn_buffer_segment(buffer, 0).data, self.content, BYTES)
        self.need(self.tn.tn_manager_adopt(self.manager, self.tn.tn_buffer_payload(buffer),
                                           Location(NONE, 0), REPLICABLE, byref(handle)))
        return handle

    def acquire(self, at, stream):
        lease = Lease()
        self.need(self.tn.tn_manager_acquire(self.manager, byref(self.handle), 1, at, stream,
                                             byref(lease)))
        return lease

    def read(self, lease):
        payload = c_void_p()
        self.need(self.tn.tn_lease_lookup(byref(lease), self.handle, byref(payload)))
        segment = self.tn.tn_buffer_segment(payload, 0)
        return ctypes.string_at(segment.data, segment.bytes)

    def borrow(self, at, stream):
        lease = self.acquire(at, stream)
        assert self.read(lease) == self.content
        self.need(self.tn.tn_lease_release(byref(lease), 0))

    def end(self):
        self.need(self.tn.tn_manager_close(self.manager, 0))
        self.need(self.tn.tn_manager_destroy(self.manager))
        self.need(self.tn.tn_sim_stream_destroy(self.sim, self.stream))
        self.tn.tn_sim_destroy(self.sim)


def borrow_in_threads(session):
    failures = []

    def body(index):
        places = (Location(PAGEABLE, 0), None), (Location(CUDA, 0), session.stream)
        try:
            for i in range(ROUNDS):
                session.borrow(*places[(i + index) % 2])
        except AssertionError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def main():
    session = Session(load(sys.argv[1]))
    lease = session.acquire(Location(PAGEABLE, 0), None)
    assert session.read(lease) == session.content
    session.need(session.tn.tn_manager_close(session.manager, 0), TN_ERR_IN_USE)
    session.need(session.tn.tn_lease_release(byref(lease), 0))
    payload = c_void_p()
    session.need(session.tn.tn_lease_lookup(byref(lease), session.handle, byref(payload)),
                 TN_ERR_LIFETIME_CLOSED)
    borrow_in_threads(session)
    session.end()
    print(f"{THREADS * ROUNDS + 1} leases from Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
