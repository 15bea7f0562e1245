/* affinity.h - Eq. 1 of the paper (§5.4): how much two instances, or two services, belong together.
 *
 *     A(a,b) = (m_ab / m) · w + (d_ab / d) · (1 − w)
 *
 * m and d are the totals over all counted messages and bytes of the document. Rows of the same pair
 * add up in both directions; a row from a thing to itself counts nowhere (so that ΣA = 1 whenever
 * m > 0 and d > 0). Unknown bytes add nothing; w becomes 1 only where no row has known bytes; a
 * total of 0 leaves its term 0. A model that gives degrees instead of messages keeps them.
 * O(M + K log K) for M rows and K pairs. */
#ifndef REMAP_ANALYZER_AFFINITY_H
#define REMAP_ANALYZER_AFFINITY_H

#include "analyzer/analyzer.h"

extern const struct analyzer affinity_analyzer;

#endif
