"""Tables: read from files or memory, typed, encoded as numbers."""

from vntransfer.tables.columns import Frame as Frame
from vntransfer.tables.encoder import Findings as Findings
from vntransfer.tables.encoder import TableEncoder as TableEncoder
from vntransfer.tables.example import example_table as example_table
from vntransfer.tables.frame import read_frame as read_frame
from vntransfer.tables.options import ReadOptions as ReadOptions
from vntransfer.tables.problem import Problem as Problem
from vntransfer.tables.problem import TableColumns as TableColumns
from vntransfer.tables.problem import read_problem as read_problem
from vntransfer.tables.schema import Field as Field
