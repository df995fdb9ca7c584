"""Tables of one's own: columns of any kind, models that remember how they were encoded."""

from vntransfer.tabular.encoder import Findings as Findings
from vntransfer.tabular.encoder import TableEncoder as TableEncoder
from vntransfer.tabular.schema import Field as Field
from vntransfer.tabular.table import Frame as Frame
from vntransfer.tabular.table import Problem as Problem
from vntransfer.tabular.table import read_frame as read_frame
from vntransfer.tabular.table import read_problem as read_problem
