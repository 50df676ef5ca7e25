/** Metrics for Prometheus. Counters follow the events; gauges are computed at each scrape. */
import { collectDefaultMetrics } from 'prom-client'
import type { Duration } from '../../system/clock.ts'
import { VERSION } from '../../system/version.ts'
import type { Listen } from '../events.ts'
import { openCounters } from './counters.ts'
import { openGauges, type MetricSources } from './gauges.ts'
import { MetricSet, type MetricText } from './metric-set.ts'

export interface Metrics {
  readonly listen: Listen
  /** Records the duration of a commit made for the measurement. */
  readonly committed: (took: Duration) => void
  /** Records the duration of a transaction of PostgreSQL. */
  readonly transacted: (took: Duration) => void
  readonly contentType: string
  /** Help texts for docs/monitoring.md. */
  readonly texts: readonly MetricText[]
  /** Renders the metrics as Prometheus text. */
  render(): Promise<string>
}

const COMMIT_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5]

export function openMetrics(sources: MetricSources): Metrics {
  const set = new MetricSet()
  collectDefaultMetrics({ register: set.registry })
  set
    .gauge('build_info', 'Always 1; the labels are the versions of deferd and Node.', ['version', 'node'])
    .set({ version: VERSION, node: process.version }, 1)
  const listen = openCounters(set)
  const readGauges = openGauges(set, sources)
  const commits = set.histogram(
    'store_commit_seconds',
    'Time of one commit with its sync, measured by each health check and once a minute.',
    COMMIT_BUCKETS,
  )
  const transactions = set.histogram(
    'database_transaction_seconds',
    'Time of each transaction of this node in PostgreSQL, from its first statement to the answer to its commit.',
    COMMIT_BUCKETS,
  )
  return {
    listen,
    committed: (took) => commits.observe(took / 1000),
    transacted: (took) => transactions.observe(took / 1000),
    contentType: set.registry.contentType,
    texts: set.texts,
    render: async () => {
      await readGauges()
      return set.registry.metrics()
    },
  }
}
