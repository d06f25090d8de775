"""The device starts at its first use, and what was asked for before happens then."""

import pytest

FIRST_USES = [
    "torch.empty(1, device='minimal')",
    "torch.ones(2).to('minimal')",
    "m.init()",
    "m.set_device(1)",
    "m.synchronize()",
    "m.get_device_name(0)",
    "m.get_rng_state()",
    "m.current_stream()",
]


@pytest.fixture(scope="module")
def fork(minimal):
    """Runs code in a forked child of an interpreter whose device has not been used."""
    minimal(
        """
        import json, os
        def fork(code):
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    names = {"torch": torch, "m": m, "devhost": devhost}
                    exec(code, names)
                    answer = names.get("answer")
                except BaseException as error:
                    answer = f"{type(error).__name__}: {error}"
                os.write(writer, json.dumps(answer).encode())
                os._exit(0)
            os.close(writer)
            with open(reader) as pipe:
                answer = json.load(pipe)
            assert os.waitpid(child, 0)[1] == 0
            return answer
        """
    )
    assert minimal("m.is_initialized()") is False
    yield lambda code: minimal(f"fork({code!r})")
    assert minimal("[m.is_initialized(), m.runtime.starts]") == [False, 0]


def test_queries_start_nothing(fork):
    assert fork(
        "m.device_count(); m.is_available(); m.current_device(); m.is_initialized()\n"
        "m.manual_seed(3); torch.manual_seed(3); m.seed_all(); m._is_in_bad_fork()\n"
        "torch.rand(2).is_pinned(); torch.ones(2, requires_grad=True).sum().backward()\n"
        "answer = [m.runtime.starts, m._initialized, len(m.default_generators)]"
    ) == [0, False, 0]


@pytest.mark.parametrize("use", FIRST_USES)
def test_first_use_starts_it_once(fork, use):
    assert fork(
        f"{use}\n{use}\n"
        "answer = [m.runtime.starts, m.is_initialized(), m._initialized, "
        "len(m.default_generators)]"
    ) == [1, True, True, 2]


def test_last_seed_wins(fork):
    seeds = "answer = [g.initial_seed() for g in m.default_generators]"
    assert fork(f"m.manual_seed_all(1); m.manual_seed(2); m.init(); {seeds}") == [2, 1]
    assert fork(f"m.manual_seed(2); m.manual_seed_all(1); m.init(); {seeds}") == [1, 1]
    assert fork(f"m.manual_seed(2); m.manual_seed(3); m.init(); {seeds}")[0] == 3
    assert fork(f"torch.manual_seed(4); m.init(); {seeds}") == [4, 4]
    assert fork(f"m.manual_seed_all(-1); m.init(); {seeds}") == [2**64 - 1] * 2


def test_state_set_before_the_start(fork):
    assert fork(
        "source = torch.Generator().manual_seed(11)\n"
        "state = source.get_state()\n"
        "m.set_rng_state(state, 1)\n"
        "state.zero_()\n"
        "m.init()\n"
        "answer = [torch.equal(m.get_rng_state(1), source.get_state()),"
        " m.default_generators[1].initial_seed()]"
    ) == [True, 11]


def test_waiting_call_that_fails_says_where_it_was_made(fork):
    answer = fork(
        "def configure():\n    m.set_rng_state(torch.zeros(7, dtype=torch.uint8), 0)\n"
        "m.manual_seed_all(5)\n"
        "configure()\n"
        "try: m.init()\n"
        "except devhost.DeferredCallError as error: message = str(error)\n"
        "m.init()\n"
        "answer = [message, m.runtime.starts, m.default_generators[1].initial_seed()]"
    )
    message, starts, seed = answer
    assert "device 'minimal'" in message
    assert "RuntimeError: " in message
    assert "in configure" in message
    # The start itself was fine, and the other call was made.
    assert (starts, seed) == (1, 5)


def test_start_that_fails_is_tried_again(fork):
    assert fork(
        "start = m.runtime.init\n"
        "def fail(): raise OSError('no driver')\n"
        "lazy = m.init.__self__\n"
        "lazy._start = fail\n"
        "try: torch.ones(1, device='minimal')\n"
        "except OSError as error: first = str(error)\n"
        "lazy._start = start\n"
        "answer = [first, torch.ones(1, device='minimal').cpu().item(), m.runtime.starts]"
    ) == ["no driver", 1.0, 1]


def test_threads_start_it_once(fork):
    started = fork(
        "import threading, time\n"
        "lazy = m.init.__self__\n"
        "start = lazy._start\n"
        "def slowly(): time.sleep(0.05); start()\n"
        "lazy._start = slowly\n"
        "def use(): torch.ones(1, device='minimal')\n"
        "threads = [threading.Thread(target=use) for _ in range(8)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "answer = m.runtime.starts"
    )
    assert started == 1


def test_fork_after_the_start(site):
    site.add_package("minimal")
    result = site.python(
        """
        import os, torch
        m = torch.minimal
        torch.ones(1, device="minimal")
        before = [g.initial_seed() for g in m.default_generators]
        if os.fork() == 0:
            print(m._is_in_bad_fork(), m.is_initialized())
            torch.manual_seed(1); m.manual_seed(1); m.manual_seed_all(1)
            print([g.initial_seed() for g in m.default_generators] == before)
            try:
                m.init()
            except RuntimeError as error:
                print(error)
            os._exit(0)
        os.wait()
        print(m._is_in_bad_fork(), m.is_initialized(), torch.ones(1, device="minimal").cpu().item())
        """
    )
    assert result.stdout.splitlines() == [
        "True False",
        "True",
        "Cannot re-initialize minimal in forked subprocess. To use minimal with multiprocessing, "
        "you must use the 'spawn' start method",
        "False True 1.0",
    ]
