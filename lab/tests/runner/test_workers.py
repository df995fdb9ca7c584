"""Workers compute the same digits whatever the machine: one thread, vectors of AVX2 at most."""

import os
import subprocess
import sys

from vntransfer_lab.runner.workers import Pool, has_wide_vectors, variables


def test_workers_have_one_thread_and_no_wider_vectors_than_avx2() -> None:
    code = "import torch; print(torch.get_num_threads(), torch.backends.cpu.get_cpu_capability())"
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | variables(),
        capture_output=True,
        text=True,
        check=True,
    )
    threads, vectors = told.stdout.split()
    assert threads == "1"
    assert vectors != "AVX512"


def test_the_pool_gives_them_to_its_processes() -> None:
    with Pool(1, 1) as pool:
        wanted = variables()
        there = {name: pool._executor().submit(os.getenv, name).result() for name in wanted}
    assert there == wanted
    assert there["OMP_NUM_THREADS"] == "1"


def test_wide_vectors_are_those_of_torch() -> None:
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    plain = {name: value for name, value in os.environ.items() if name not in variables()}
    told = subprocess.run(
        [sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True
    )
    assert has_wide_vectors() == (told.stdout.strip() == "AVX512")
