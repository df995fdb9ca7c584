"""Which places behave alike: divergences with intervals, tests, clusters, rankings."""

from vntransfer.relate._relate import relate as relate
from vntransfer.relate._result import Interval as Interval
from vntransfer.relate._result import Neighbour as Neighbour
from vntransfer.relate._result import Relation as Relation
from vntransfer.relate._test import RelationTest as RelationTest
from vntransfer.relate._test import relation_test as relation_test
