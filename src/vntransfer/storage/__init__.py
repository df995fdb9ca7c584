"""Files and folders: written atomically, hashed, and replaced only if vntransfer wrote them."""

from vntransfer.storage.files import atomic_write as atomic_write
from vntransfer.storage.files import file_hash as file_hash
from vntransfer.storage.files import fingerprint as fingerprint
from vntransfer.storage.pacing import Pace as Pace
from vntransfer.storage.pacing import Paced as Paced
from vntransfer.storage.pacing import paced as paced
