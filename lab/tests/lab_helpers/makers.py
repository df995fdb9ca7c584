"""Tiny files in the official formats, one maker per data set: folder -> files below it."""

import gzip
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

SEVEN = (
    "baby",
    "beauty",
    "camera_&_photo",
    "computer_&_video_games",
    "electronics",
    "gourmet_food",
    "grocery",
)
ALL_DOMAINS = (
    *SEVEN,
    *("apparel", "automotive", "books", "cell_phones_&_service", "dvd", "health_&_personal_care"),
    *("jewelry_&_watches", "kitchen_&_housewares", "magazines", "music", "musical_instruments"),
    *("office_products", "outdoor_living", "software", "sports_&_outdoors", "tools_&_hardware"),
    *("toys_&_games", "video"),
)
Files = dict[str, bytes]


def tar(path: Path, files: Files) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as box:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            box.addfile(info, io.BytesIO(content))


def zipped(path: Path, files: Files) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as box:
        for name, content in files.items():
            box.writestr(name, content)


def folder(path: Path, files: Files) -> None:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)


def png(pixels: np.ndarray) -> bytes:
    box = io.BytesIO()
    Image.fromarray(pixels).save(box, "png")
    return box.getvalue()


def csv(rows: Iterable[Iterable[float]], delimiter: str = ",") -> bytes:
    return "".join(delimiter.join(f"{v:g}" for v in row) + "\n" for row in rows).encode()


def idx(array: np.ndarray) -> bytes:
    return (
        bytes([0, 0, 8, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def make_mnist(root: Path, sub: str = "mnist") -> None:
    rng = np.random.default_rng(1)
    (root / sub).mkdir(parents=True)
    for part, n in (("train", 120), ("t10k", 40)):
        images = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        labels = rng.integers(0, 10, n, dtype=np.uint8)
        (root / sub / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (root / sub / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))


def make_fashion(root: Path) -> None:
    make_mnist(root, "fashion_mnist")


def notmnist_files() -> Files:
    """Twelve pictures per letter, one of them twice, and two damaged files."""
    rng = np.random.default_rng(2)
    files = {
        f"notMNIST_small/{letter}/{i}.png": png(rng.integers(0, 256, (28, 28), dtype=np.uint8))
        for letter in "ABCDEFGHIJ"
        for i in range(12)
    }
    files["notMNIST_small/A/again.png"] = files["notMNIST_small/A/3.png"]
    return files | {"notMNIST_small/B/bad.png": b"", "notMNIST_small/C/bad.png": b"\x89PNG"}


def make_notmnist(root: Path) -> None:
    tar(root / "notmnist" / "notMNIST_small.tar.gz", notmnist_files())


def omniglot_files(alphabets: tuple[str, ...] = ("Beta", "Alpha")) -> Files:
    rng = np.random.default_rng(3)
    return {
        f"images_background/{alphabet}/character{c:02d}/{10 * a + c:04d}_{d:02d}.png": png(
            np.where(rng.random((105, 105)) < 0.1, 0, 255).astype(np.uint8)
        )
        for a, alphabet in enumerate(alphabets)
        for c in range(1, 3 + a)
        for d in range(1, 21)
    }


def make_omniglot(root: Path) -> None:
    zipped(root / "omniglot" / "images_background.zip", omniglot_files())


def review(stars: float, title: str, text: str) -> str:
    return (
        f"<review>\n<unique_id>\nx\n</unique_id>\n<rating>\n{stars}\n</rating>\n"
        f"<title>\n{title}\n</title>\n<review_text>\n{text}\n</review_text>\n</review>\n"
    )


def unprocessed_files(domains: Iterable[str] = ALL_DOMAINS) -> Files:
    files = {}
    for domain in domains:
        good = [review(4 + i % 2, "Good", f"i like this {domain} number{i}") for i in range(4)]
        bad = [review(1 + i % 2, "Bad", f"this {domain} broke number{i}") for i in range(4)]
        good.append(good[0])  # an exact repeat
        for part, rows in (("positive", good), ("negative", bad), ("unlabeled", good)):
            files[f"sorted_data/{domain}/{part}.review"] = "".join(rows).encode("latin-1")
    return files


def make_amazon(root: Path) -> None:
    tar(root / "amazon" / "unprocessed.tar.gz", unprocessed_files())


def make_amazon4(root: Path) -> None:
    rows = [
        {"domain": d, "rating": float(s), "title": "Title", "text": f"some words {s} naïve"}
        for d in ("books", "dvd", "electronics", "kitchen")
        for s in (1, 2, 4, 5, 5)
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    folder(root / "amazon", {"blitzer_raw_stars_4domains.jsonl.gz": gzip.compress(content)})


def make_amazon7i(root: Path) -> None:
    lines = ["domain\tthreshold\tsplit\tlabel\tstar_min\tstar_max\ttext"]
    for name in SEVEN:
        domain = name.replace("_&_", "_")
        lines += [
            f"{domain}\tt4\ttrain\t1\t4\t5\tvery good thing",
            f"{domain}\tt2\ttrain\t-1\t1\t1\tbroke soon",
            f"{domain}\tt2\ttrain\t1\t2\t5\tso so",
            f"{domain}\tt5\tdev\t-1\t1\t4\tso so",
        ]
    content = gzip.compress("\n".join(lines).encode())
    folder(root / "amazon", {"blitzer_7domains_thresholded_stars.tsv.gz": content})


def trancos_files(n_images: int = 18) -> Files:
    """Pictures of six cameras, each with its own strip of road; every mask differs a little."""
    rng = np.random.default_rng(4)
    files: Files = {}
    names = []
    for i in range(n_images):
        stem, camera = f"image-1-{i:06d}", i % 6
        mask = np.zeros((480, 640), dtype=np.uint8)
        mask[:, 100 * camera : 100 * camera + 120] = 1
        mask[: 1 + i] = 0
        box = io.BytesIO()
        savemat(box, {"BW": mask})
        picture = io.BytesIO()
        Image.new("RGB", (640, 480), (10 * camera, 20, 30)).save(picture, "jpeg")
        dots = rng.integers((1, 1), (640, 480), (camera + 1, 2))
        files[f"TRANCOS_v3/images/{stem}.jpg"] = picture.getvalue()
        files[f"TRANCOS_v3/images/{stem}.txt"] = csv(dots, "\t")
        files[f"TRANCOS_v3/images/{stem}mask.mat"] = box.getvalue()
        names.append(f"{stem}.jpg")
    for k, part in enumerate(("training", "validation", "test")):
        files[f"TRANCOS_v3/image_sets/{part}.txt"] = "\n".join(names[k::3]).encode()
    files["TRANCOS_v3/image_sets/trainval.txt"] = b"ignored.jpg\n"
    return files


def make_trancos(root: Path) -> None:
    tar(root / "trancos" / "TRANCOS_v3.tar.gz", trancos_files())


def landmine_mat() -> bytes:
    rng = np.random.default_rng(5)
    cells = np.empty((2, 1, 29), dtype=object)
    for i in range(29):
        cells[0, 0, i] = rng.normal(size=(6 + i % 3, 9))
        cells[1, 0, i] = rng.integers(0, 2, (6 + i % 3, 1), dtype=np.uint8)
    box = io.BytesIO()
    savemat(box, {"feature": cells[0], "label": cells[1]})
    return box.getvalue()


def make_landmine(root: Path) -> None:
    zipped(root / "landmine" / "LandmineData.zip", {"LandmineData.mat": landmine_mat()})


def year_rows(n: int = 200) -> np.ndarray:
    rng = np.random.default_rng(6)
    return np.column_stack([rng.integers(1922, 2012, n), rng.normal(size=(n, 90)).round(4)])


def make_yearpred(root: Path) -> None:
    text = {"YearPredictionMSD.txt": csv(year_rows())}
    zipped(root / "yearpredictionmsd" / "YearPredictionMSD.txt.zip", text)


def make_yearpred_small(root: Path) -> None:
    rows, box = year_rows(), io.BytesIO()
    source = (np.arange(len(rows)) % 3).astype(np.uint8)
    np.savez(box, X=rows[:, 1:], y=rows[:, 0].astype(np.int16), source=source)
    folder(root / "yearpredictionmsd", {"yearpred_subset.npz": box.getvalue()})


def ct_csv(n: int = 60) -> bytes:
    rng = np.random.default_rng(7)
    rows = np.column_stack([np.arange(n) % 11, rng.random((n, 384)), 180 * rng.random(n)])
    names = ["patientId", *(f"value{i}" for i in range(384)), "reference"]
    return ",".join(names).encode() + b"\n" + csv(rows)


def make_ct_slices(root: Path) -> None:
    files = {"slice_localization_data.csv": ct_csv()}
    zipped(root / "ct_slices" / "slice_localization_data.zip", files)


def regression_maker(
    archive: str, stem: str, columns: int, delimiter: str
) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        rows = np.random.default_rng(8).normal(size=(30, columns)).round(3)
        files = {
            f"Some/{stem}.domain": b"x1: continuous\n",
            f"Some/{stem}.data": csv(rows[:20], delimiter),
            f"Some/{stem}.test": csv(rows[20:], delimiter),
        }
        tar(root / "regression" / archive, files)

    return make


def uci_maker(name: str, columns: int) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        rng = np.random.default_rng(9)
        rows = np.column_stack([np.arange(90) % 12, rng.normal(size=(90, columns - 1)).round(3)])
        folder(root / "uci_extra", {f"{name}_data.csv.gz": gzip.compress(csv(rows))})

    return make


MAKERS: dict[str, Callable[[Path], None]] = {
    "amazon": make_amazon,
    "amazon4": make_amazon4,
    "amazon7i": make_amazon7i,
    "trancos": make_trancos,
    "landmine": make_landmine,
    "yearpredictionmsd": make_yearpred,
    "yearpred-small": make_yearpred_small,
    "ct_slices": make_ct_slices,
    "protein": uci_maker("protein", 10),
    "bike": uci_maker("bike", 18),
    "pol": uci_maker("pol", 27),
    "pumadyn32nm": uci_maker("pumadyn32nm", 33),
    "parkinsons": uci_maker("parkinsons", 21),
    "2dplanes": regression_maker("cart_delve.tgz", "cart_delve", 11, "  "),
    "cal_housing": regression_maker("cal_housing.tgz", "cal_housing", 9, ","),
    "bank8FM": regression_maker("bank8FM.tgz", "bank8FM", 9, " "),
    "puma8NH": regression_maker("puma8NH.tgz", "puma8NH", 9, " "),
    "mnistP": make_mnist,
    "mnistR": make_mnist,
    "mnistS": make_mnist,
    "fashionP": make_fashion,
    "fashionS": make_fashion,
    "notmnistP": make_notmnist,
    "omniglot": make_omniglot,
}
"""Makers of tiny official files; sets that are generated have none."""

SMALL: dict[str, dict[str, object]] = {
    "mnistP": {"n_train": 20, "n_test": 10},
    "mnistR": {"n_train": 20, "n_test": 10},
    "mnistS": {"n_train": 10, "n_test": 4},
    "fashionP": {"n_train": 20, "n_test": 10},
    "fashionS": {"n_train": 10, "n_test": 4},
    "notmnistP": {"n_train": 20, "n_test": 10},
    "digitsP": {"n_train": 20, "n_test": 10},
    "omniglot": {"n_tasks": 2},
    "trancos": {"size": (48, 64)},
}
