"""Which places behave alike: divergences with intervals, tests, clusters, rankings."""

from vntransfer.relations._pair_statistic import Noise as Noise
from vntransfer.relations._pairwise_tests import RIDGE as RIDGE
from vntransfer.relations._pairwise_tests import Null as Null
from vntransfer.relations._pairwise_tests import RelationTest as RelationTest
from vntransfer.relations._pairwise_tests import check_words as check_words
from vntransfer.relations._pairwise_tests import relation_test as relation_test
from vntransfer.relations._resampled_divergences import check_divergence as check_divergence
from vntransfer.relations.result import Interval as Interval
from vntransfer.relations.result import Neighbor as Neighbor
from vntransfer.relations.result import Relation as Relation
