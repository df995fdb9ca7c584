"""Files and folders: written whole or not at all, hashed, and replaced only where they are ours."""

from vntransfer.storage.files import atomic_write as atomic_write
from vntransfer.storage.files import file_hash as file_hash
from vntransfer.storage.files import fingerprint as fingerprint
from vntransfer.storage.pacing import Pace as Pace
from vntransfer.storage.pacing import Paced as Paced
from vntransfer.storage.pacing import paced as paced
