"""Which places behave alike: divergences with intervals, tests, clusters, rankings."""

from vntransfer.relations._pairwise_tests import RelationTest as RelationTest
from vntransfer.relations._pairwise_tests import relation_test as relation_test
from vntransfer.relations.result import Interval as Interval
from vntransfer.relations.result import Neighbor as Neighbor
from vntransfer.relations.result import Relation as Relation
from vntransfer.relations.settings import RIDGE as RIDGE
from vntransfer.relations.settings import Engine as Engine
from vntransfer.relations.settings import RelateSettings as RelateSettings
