"""Loaded processes that run frames on request and take turns, so that both see the same machine.

A side is a command that prints {"ready":true} once it is loaded and warm; then, for each line N on
its standard input, it runs N frames and prints their milliseconds as {"ms":[...]}.
"""
import glob
import json
import math
import os
import statistics
import subprocess
import time

TURN = 0.1  # seconds of one side's turn
QUIET = 0.02  # of a turn: the most that a side may have waited for a processor
PATIENCE = 3  # as many turns as asked for, until enough of them were quiet


class Failure(Exception):
    """What one model or one side could not do."""


def processors(count):
    """That many of those that this process may use, from the last one on; None if it has fewer."""
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    return allowed[:count] if count <= len(allowed) else None


class Server:
    def __init__(self, command, cpus):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, bufsize=1,
                                      preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        if not json.loads(self.line()).get('ready'):
            raise Failure('no ready from ' + command[0])

    def line(self):
        line = self.child.stdout.readline()
        if not line:
            raise Failure('%s ended: %s' % (os.path.basename(self.child.args[0]),
                                            self.child.stderr.read().strip()[-300:]))
        return line

    def turn(self, frames):
        self.child.stdin.write('%d\n' % frames)
        return json.loads(self.line())['ms']

    def watched_turn(self, frames):
        """(share of the turn that it waited for a processor, milliseconds of its frames)"""
        waited, start = self.waited(), time.monotonic()
        times = self.turn(frames)
        return (self.waited() - waited) / (time.monotonic() - start), times

    def waited(self):
        """Seconds so far that threads could run and did not: others had the processor."""
        total = 0
        for path in glob.glob('/proc/%d/task/*/schedstat' % self.child.pid):
            try:
                with open(path) as file:
                    total += int(file.read().split()[1])
            except OSError:
                pass  # that thread has ended
        return total / 1e9

    def close(self):
        self.child.stdin.close()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.child.stdout.close()
        self.child.stderr.close()


class Sides:
    """Servers that are closed together."""

    def __init__(self, commands, cpus):
        self.servers = []
        try:
            for command in commands:
                self.servers.append(Server(command, cpus))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for server in self.servers:
            server.close()

    def in_order(self, turn):
        # Who begins changes, so that none always follows the same other's caches.
        numbered = list(enumerate(self.servers))
        return numbered if turn % 2 == 0 else reversed(numbered)

    def back_to_back(self, rounds):
        """(milliseconds of its frames, the most that it waited) of each side, of as many turns as
        `rounds`: those in which it waited least. There are more turns if too few were quiet."""
        frames = [max(1, min(1000, int(TURN * 1e3 / statistics.median(side.turn(3)))))
                  for side in self.servers]
        turns = [[] for _ in self.servers]
        for turn in range(PATIENCE * rounds):
            for index, side in self.in_order(turn):
                turns[index].append(side.watched_turn(frames[index]))
            if all(sum(waited <= QUIET for waited, _ in one) >= rounds for one in turns):
                break
        used = [sorted(one, key=lambda turn: turn[0])[:rounds] for one in turns]
        return [([ms for _, times in one for ms in times], one[-1][0]) for one in used]

    def paced(self, frames, rate, block):
        """The milliseconds of each side's frames: one every 1/rate seconds, the time between them
        idle; the sides take turns of `block` frames."""
        times = [[] for _ in self.servers]
        for turn in range(-(-frames // block)):
            for index, side in self.in_order(turn):
                begin = time.monotonic()
                for frame in range(min(block, frames - turn * block)):
                    time.sleep(max(0, begin + (frame + 1) / rate - time.monotonic()))
                    times[index] += side.turn(1)
        return times


def quantile(times, share):
    """The smallest time that at least this share of all did not exceed."""
    ordered = sorted(times)
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]
