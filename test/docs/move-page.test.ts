/** docs/move.md against the records of the source. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Records } from '../../src/store/records/records.ts'

interface RecordMove {
  /** As docs/move.md names the part of the queue. */
  readonly part: string
  readonly final: string
}

const ACCESS: RecordMove = { part: 'access entries and tokens of programs', final: 'are copied' }
const AUDIT: RecordMove = { part: 'history and audit log', final: 'are copied' }
const REPORTS: RecordMove = { part: 'results of TLS-RPT and reports that are due', final: 'stay, and the last day is not reported' }
const CHARTS: RecordMove = { part: 'series and marks of Trends', final: 'stay' }
const PROVIDERS: RecordMove = { part: 'suspensions of providers by operators', final: 'are copied, unless the other has one' }
const OF_HISTORY: RecordMove = { part: 'kept contents of returned mail, and dialogues', final: 'stay' }
const ERASURE: RecordMove = { part: 'erasures that run, and the key of erased names', final: 'stay: wait for their end before' }

const RECORD_MOVES: { readonly [Name in keyof Records]: RecordMove } = {
  tokens: ACCESS,
  access: ACCESS,
  audit: AUDIT,
  requests: { part: 'idempotency keys of requests', final: 'stay' },
  stsPolicies: { part: 'MTA-STS policies', final: 'stay, and are fetched again' },
  suppressions: { part: 'suppression list', final: 'is copied, but for refusals that list no address yet' },
  suppressionStops: { part: 'stops of the suppression list', final: 'stay' },
  quotaCounts: { part: 'counts of quotas', final: 'stay, and begin at zero' },
  tlsResults: REPORTS,
  tlsReports: REPORTS,
  grants: { part: 'refresh tokens of OAuth', final: 'are copied' },
  erasures: ERASURE,
  erasureKeys: ERASURE,
  keptContents: OF_HISTORY,
  sessions: OF_HISTORY,
  providers: PROVIDERS,
  providerMembers: { part: 'providers of destinations', final: 'stay, and are found again' },
  scheduleRuns: { part: 'last runs of schedules', final: 'stay' },
  domainChecks: { part: 'reports of domain checks', final: 'stay' },
  classBands: { part: 'numbers of classes', final: 'stay; each class gets one anew' },
  series: CHARTS,
  backlogs: CHARTS,
  marks: CHARTS,
}

test('the page tells for each kind of record what becomes of it when a queue moves as a whole', () => {
  const page = readFileSync('docs/move.md', 'utf8')
  const rows = [...page.matchAll(/^\| ([^|]+?) +\| [^|]+\| ([^|]+?) +\|$/gm)].map(([, part, final]) => `${part}: ${final}`)
  expect(rows).toEqual(expect.arrayContaining(Object.values(RECORD_MOVES).map(({ part, final }) => `${part}: ${final}`)))
})
