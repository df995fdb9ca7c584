"""Records of the streams of tasks."""

from vntransfer_lab.data.entry import Entry, RemoteFile
from vntransfer_lab.data.registry.files import official_file

_STREAM_PARAMETERS = {
    "n_tasks": "number of tasks, 10",
    "n_train": "training rows per task, 1000",
    "n_test": "test rows, 10000 or all there are",
    "seed": "seed of the stream (maps and rows); the seed of training is the learner's own; 0",
    "held_out": "test rows from the last sixth of the training part, to choose "
    "hyper-parameters; False",
}


def _idx_files(folder: str, *addresses: str) -> tuple[RemoteFile, ...]:
    shorts = [f"{part}-{what}" for part in ("train", "t10k") for what in _IDX]
    return tuple(
        official_file(folder, f"{s}.gz", *(f"{address}/{s}.gz" for address in addresses), also=(s,))
        for s in shorts
    )


_IDX = ("images-idx3-ubyte", "labels-idx1-ubyte")
_MNIST = _idx_files(
    "mnist",
    "http://yann.lecun.com/exdb/mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist",
)
_FASHION = _idx_files("fashion_mnist", "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com")


_COLLECTIONS = {"notmnistP": "notmnist", "digitsP": "digits"}
_TRANSFORMS = {"P": "permute", "R": "rotate", "S": "split"}
_OTHER_PARAMETERS = {
    "rotate": {"max_angle": "rotations cover 0 to this many degrees, 90"},
    "split": {
        "n_tasks": "number of tasks, among which the ten classes are dealt: 1, 2 or 5; 5",
        "n_test": "test rows; as many as the smallest task has",
    },
}


def _stream(
    name: str, title: str, files: tuple[RemoteFile, ...], license: str, citation: str
) -> Entry:
    transform = _TRANSFORMS[name[-1]]
    return Entry(
        name=name,
        title=title,
        kind="stream",
        loader="vntransfer_lab.data.streams:load_stream",
        files=files,
        options={
            "name": name,
            "collection": _COLLECTIONS.get(name, "idx"),
            "transform": transform,
        },
        license=license,
        citation=citation,
        parameters=_STREAM_PARAMETERS | _OTHER_PARAMETERS.get(transform, {}),
    )


_LECUN = "LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition"
_MNIST_LICENSE = "CC BY-SA 3.0"
_XIAO = "Xiao, Rasul, Vollgraf: Fashion-MNIST, 2017"
STREAMS = (
    _stream("mnistP", "permuted MNIST, 10 tasks", _MNIST, _MNIST_LICENSE, f"{_LECUN}, 1998"),
    _stream("mnistR", "rotated MNIST, 10 tasks", _MNIST, _MNIST_LICENSE, f"{_LECUN}, 1998"),
    _stream(
        "mnistS",
        "MNIST split by class, 5 tasks with a head each",
        _MNIST,
        _MNIST_LICENSE,
        f"{_LECUN}, 1998",
    ),
    _stream("fashionP", "permuted Fashion-MNIST, 10 tasks", _FASHION, "MIT", _XIAO),
    _stream(
        "fashionS", "Fashion-MNIST split by class, 5 tasks with a head each", _FASHION, "MIT", _XIAO
    ),
    _stream(
        "notmnistP",
        "permuted notMNIST, 10 tasks",
        (
            official_file(
                "notmnist",
                "notMNIST_small.tar.gz",
                "http://yaroslavvb.com/upload/notMNIST/notMNIST_small.tar.gz",
                also=("notMNIST_small",),
                compact="notmnist_small.npz",
                size=8_458_043,
            ),
        ),
        "not stated; glyphs of publicly available fonts",
        "Bulatov: notMNIST dataset, 2011",
    ),
    _stream(
        "digitsP",
        "permuted digits of 8 x 8 pixels, 10 tasks; comes with scikit-learn",
        (),
        "CC BY 4.0",
        "Alpaydin, Kaynak: Optical recognition of handwritten digits, 1998",
    ),
    Entry(
        name="omniglot",
        title="Omniglot alphabets, 10 tasks with a head each",
        kind="stream",
        loader="vntransfer_lab.data.omniglot:load_omniglot",
        files=(
            official_file(
                "omniglot",
                "images_background.zip",
                "https://github.com/brendenlake/omniglot/raw/master/python/images_background.zip",
                also=("images_background",),
                compact="omniglot_images_background.npz",
            ),
        ),
        license="MIT",
        citation="Lake, Salakhutdinov, Tenenbaum: Human-level concept learning, Science 2015",
        parameters={
            "n_tasks": "number of alphabets, in the order of their names, 10",
            "n_train": "training drawings of the 20 of every character, 15",
            "size": "side of the pictures in pixels, 28 (105 is the original)",
            "held_out": "the last alphabets instead, to choose hyper-parameters on",
            "seed": "seed of the stream: which drawings are for training; 0",
        },
    ),
)
