/**
 * Plans of all statements, as a session makes them on tables that were emptied and vacuumed: a plan made then stays, and must not read
 * the whole table when it has a million rows.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listedColumns } from '../../../src/store/postgres/message-pages.ts'
import { messageWithAll } from '../../../src/store/postgres/postgres-reader.ts'
import { place, POSTGRES } from '../../../src/store/postgres/spelling.ts'
import { listedWhole, wholeRecipients } from '../../../src/store/postgres/whole-listing.ts'
import { openSession } from '../../../src/store/postgres/session/client.ts'
import { AUDIT_TEXTS } from '../../../src/store/records/audit-records.ts'
import { ROUND_TEXTS } from '../../../src/store/records/operation-round.ts'
import { numbered } from '../../../src/store/postgres/session/record-calls.ts'
import * as departed from '../../../src/store/postgres/writing/departed-queries.ts'
import * as operating from '../../../src/store/postgres/writing/operation-queries.ts'
import * as writing from '../../../src/store/postgres/writing/queries.ts'
import { engineStatements } from '../../support/engine-statements.ts'
import { FORMS, RANGE, readerStatements, withoutRows } from '../../support/reader-statements.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

/** Tables that grow with the backlog or with history. */
const BIG = [
  'message',
  'recipient',
  'chunk',
  'attempt',
  'history',
  'audit',
  'operated',
  'staged',
  'moving',
  'origin',
  'event',
  'parked',
  'kept_content',
]

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly Plan[]
}

/** Statements that may read without a condition on an index. Each has its reason. */
const WALKS: Record<string, string> = {
  'tally: recipient by Seq Scan': 'counts the live recipients of all nodes',
  'tally: message by message_pkey': 'reads each message that is counted',
  'tally: message by message_scheduled': 'reads the messages that are for later once',
  'moveLeased: recipient by recipient_leased': 'as large as all active queues',
  'listed active: recipient by recipient_leased': 'as large as all active queues',
  'recipientsAt: recipient by recipient_leased': 'as large as all active queues',
  'newestRecipientsAt: recipient by recipient_leased': 'as large as all active queues',
  'countAt: recipient by recipient_leased': 'as large as all active queues',
  'loadOf: recipient by recipient_leased': 'as large as all active queues',
  'scheduledAt: message by message_scheduled': 'reads the messages that are for later once',
  'busyDestinations: recipient by recipient_leased': 'as large as all active queues',
  'pruneHistory: history by history_pkey': 'from the old end, up to a limit, and the last row',
  'lastMessage: message by message_pkey': 'the last row',
  'lastDeparture: history by history_pkey': 'the last row',
  'deleteStagedOf: staged by Seq Scan': 'as many rows as contents are being received',
  'forgetOperated: operated by operated_pkey': 'the first row',
  'endAbandoned: audit by audit_runner': 'as large as what runs',
  'numberEvents: event by event_unnumbered': 'up to a limit',
  'oldestEvents: event by event_seq': 'from the old end, up to a limit',
  'boundsOfEvents: event by event_seq': 'the first row',
  'cursorBefore: event by event_seq': 'from the new end, up to the first row that is older',
  'trashCount: message by message_trash': 'as large as the trash',
  'moveState: moving by moving_pkey': 'as large as one round',
  'moveState: origin by origin_arriving': 'as large as one round',
  'moveState: message by message_pkey': 'the last row',
  'movingRows: moving by moving_pkey': 'up to a limit',
  'keptBytes: kept_content by kept_content_until': 'the sum of all, without the rows',
  'oldestKept: kept_content by kept_content_until': 'from the old end, up to a limit',
  'isInUse: message by message_pkey': 'the first row',
  'isInUse: moving by moving_pkey': 'the first row',
  'isInUse: origin by origin_arriving': 'the first row',
}

/** Indexes of recipients and messages that a statement uses. An index with another condition would be read for each call. */
const INDEXES: Record<string, readonly string[]> = {
  claimDue: ['recipient_due', 'recipient_pkey', 'message_pkey'],
  claimListed: ['recipient_pkey', 'message_pkey'],
  waitingAt: ['recipient_due', 'message_pkey'],
  nextDueAt: ['recipient_due'],
  claimSuspect: ['recipient_suspect', 'recipient_pkey', 'message_pkey'],
  claimExpired: ['recipient_expiry', 'recipient_pkey', 'message_pkey'],
  giveBack: ['recipient_pkey'],
  giveBackUnknown: ['recipient_leased', 'recipient_pkey'],
  settleLive: ['recipient_pkey'],
  settleFinal: ['recipient_pkey'],
  settleWhole: ['recipient_pkey', 'message_pkey'],
  noticesDueAmong: ['message_pkey', 'recipient_notice_due'],
  messagesWithNoticesDue: ['recipient_notice_due'],
  dueWarnings: ['message_warning', 'recipient_pkey'],
  scheduledMail: ['message_scheduled'],
  destinationsDue: ['recipient_due'],
  nextDeadlines: ['recipient_expiry', 'message_warning', 'recipient_pkey'],
  wake: ['recipient_due'],
  moveWaiting: ['recipient_due', 'recipient_pkey'],
  moveSuspect: ['recipient_suspect', 'recipient_pkey'],
  moveParked: ['recipient_parked', 'recipient_pkey'],
  moveLeased: ['recipient_leased', 'recipient_pkey'],
  tellOfMail: ['recipient_due'],
  endLeasesOf: ['recipient_leased'],
  newestRecipientsAt: ['recipient_due', 'recipient_suspect', 'recipient_leased', 'recipient_parked'],
  recipientsAt: ['recipient_due', 'recipient_suspect', 'recipient_leased', 'recipient_parked'],
  countAt: ['recipient_due', 'recipient_suspect', 'recipient_leased', 'recipient_parked'],
  loadOf: ['recipient_due', 'recipient_suspect', 'recipient_leased'],
  scheduledAt: ['recipient_due', 'recipient_suspect', 'message_scheduled'],
}

const indexesIn = (plan: Plan): readonly string[] => [
  ...new Set([
    ...(/^(recipient|message|search)_/.test(plan['Index Name'] ?? '') ? [plan['Index Name'] ?? ''] : []),
    ...(plan.Plans ?? []).flatMap(indexesIn),
  ]),
]

const TEXTS: readonly (readonly [string, string])[] = [
  ...(await engineStatements('postgres')),
  ...Object.entries({ ...AUDIT_TEXTS, ...ROUND_TEXTS }).map(([name, text]) => [name, numbered(text).text] as const),
  ['messageWithAll', messageWithAll(1).text],
  ['wholeRecipients', wholeRecipients(1, 2).text],
  ...FORMS.map((form) => ['listed whole', listedWhole(RANGE, form).text] as const),
  ...readerStatements({
    spelling: POSTGRES,
    place: withoutRows(place('far.example')),
    columns: ({ recipients }) => listedColumns(recipients),
  }),
]

/** Reads of big tables without a condition on an index, in the form `TABLE by INDEX`. */
const scansIn = (plan: Plan): readonly string[] => {
  const { 'Node Type': kind, 'Relation Name': table = '', 'Index Name': index, 'Index Cond': condition, Plans = [] } = plan
  const isScan = kind === 'Seq Scan' || kind === 'Bitmap Heap Scan' || (kind.startsWith('Index') && condition === undefined)
  return [...(isScan && BIG.includes(table) ? [`${table} by ${index ?? kind}`] : []), ...Plans.flatMap(scansIn)]
}

describe.skipIf(WITHOUT_POSTGRES.skip)(`no statement reads a whole table${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()
  let session: Awaited<ReturnType<typeof openSession>>

  beforeAll(async () => {
    session = await openSession({ url: await emptyQueue(), durability: 'primary', application: 'deferd test' })
    for (const table of [...BIG, 'arrival', 'destination', 'shard', 'node']) await session.query(`vacuum analyze ${table}`)
  })
  afterAll(() => session.end())

  const planOf = async (text: string): Promise<Plan> => {
    const { rows } = await session.query<{ 'QUERY PLAN': readonly { readonly Plan: Plan }[] }>(
      `explain (generic_plan, format json) ${text}`,
    )
    const [row] = rows
    if (row === undefined) throw new Error('there is no plan')
    return row['QUERY PLAN'][0]!.Plan
  }

  test.each(TEXTS)('%s', async (name, text) => {
    const plan = await planOf(text)
    expect(
      scansIn(plan).filter((step) => WALKS[`${name}: ${step}`] === undefined),
      JSON.stringify(plan, null, 1),
    ).toEqual([])
  })

  test('a statement that reads a whole table is detected', async () => {
    expect(scansIn(await planOf('select * from recipient where address = $1'))).toEqual(['recipient by Seq Scan'])
  })

  test.each(Object.entries(INDEXES))('%s finds recipients and messages by %s', async (name, indexes) => {
    const text = TEXTS.find(([other]) => other === name)?.[1] ?? ''
    expect(indexesIn(await planOf(text))).toEqual(indexes)
  })

  test('messages are found by the index of terms', async () => {
    const [found] = (await session.query<{ body: string }>(`select prosrc as body from pg_proc where proname = 'entries_with'`)).rows
    await session.query('set enable_bitmapscan = on')
    expect(indexesIn(await planOf((found?.body ?? '').replace('asked', '$1')))).toEqual(['search_terms'])
    await session.query('set enable_bitmapscan = off')
  })

  test('the sum of the kept contents is read from an index alone', async () => {
    expect(JSON.stringify(await planOf(departed.keptBytes))).toMatch(/"Node Type":"Index Only Scan".*"kept_content_until"/)
  })

  test('due work is found in due order', async () => {
    for (const text of [writing.nextDueAt, operating.nextDeadlines, operating.dueWarnings]) {
      expect(JSON.stringify(await planOf(text))).not.toContain('"Sort Key": ["r.')
    }
    expect(JSON.stringify(await planOf(writing.nextDueAt))).not.toContain('"Sort"')
  })
})
