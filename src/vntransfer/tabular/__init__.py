"""Tables of one's own: columns of any kind, models that remember how they were encoded."""

from vntransfer.tabular.continual import ContinualModel as ContinualModel
from vntransfer.tabular.continual import learn_tasks as learn_tasks
from vntransfer.tabular.continual_storage import load_continual_model as load_continual_model
from vntransfer.tabular.encoder import Findings as Findings
from vntransfer.tabular.encoder import TableEncoder as TableEncoder
from vntransfer.tabular.fitting import Outcome as Outcome
from vntransfer.tabular.frame import Frame as Frame
from vntransfer.tabular.frame import read_frame as read_frame
from vntransfer.tabular.intervals import Calibration as Calibration
from vntransfer.tabular.model import Predictions as Predictions
from vntransfer.tabular.model import TableModel as TableModel
from vntransfer.tabular.model import adapt as adapt
from vntransfer.tabular.schema import Field as Field
from vntransfer.tabular.storage import load_table_model as load_table_model
from vntransfer.tabular.table import Problem as Problem
from vntransfer.tabular.table import read_problem as read_problem
