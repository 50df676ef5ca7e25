/**
 * Metrics of the daemon as numbers.
 */
import type { Scrape } from './soak-figures.ts'

/** Reads a page of `/metrics`. Throws when one of the metrics is missing. */
export function readScrape(page: string): Scrape {
  const one = (name: string): number => valueOf(page, name)
  return {
    delay: 1_000 * one('nodejs_eventloop_lag_p99_seconds'),
    heap: one('nodejs_heap_size_used_bytes') / 1_048_576,
    queued: one('deferd_queue_messages'),
    accepted: one('deferd_accepted_messages_total'),
    delivered: one('deferd_attempts_total{outcome="delivered"'),
    deferred: one('deferd_attempts_total{outcome="deferred"'),
  }
}

/** The sum of the samples whose lines begin with a name, or with a name and a label. Zero before the first event of a counter with labels. */
function valueOf(page: string, beginning: string): number {
  const [name = ''] = beginning.split('{')
  if (!page.includes(`# TYPE ${name} `)) throw new Error(`the daemon has no metric ${name}`)
  return page
    .split('\n')
    .filter((line) => line.startsWith(beginning) && /^[ {,]/.test(line.slice(beginning.length)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
