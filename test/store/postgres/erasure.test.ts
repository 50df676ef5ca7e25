/** After an erasure, no row of any table of PostgreSQL has the address, also when the node that began it is gone. */
import { describe, expect, test } from 'vitest'
import { DestinationPolicies } from '../../../src/config/destination-policies.ts'
import { configFrom } from '../../../src/config/load.ts'
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import { recipientId } from '../../../src/mail/message.ts'
import { OperationLeft } from '../../../src/queue/operation-jobs.ts'
import { Operations } from '../../../src/queue/operations.ts'
import { storedScheduler } from '../../../src/queue/stored-scheduler.ts'
import { openPostgresStore } from '../../../src/store/postgres/open-store.ts'
import { PostgresNodeTable } from '../../../src/store/postgres/postgres-node-table.ts'
import type { QueueStore } from '../../../src/store/queue-store.ts'
import type { ErasureStep } from '../../../src/store/returned-mail.ts'
import { MINUTE, type Clock } from '../../../src/system/clock.ts'
import { seededRandom } from '../../../src/system/random.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { begin } from '../../conformance/audit.ts'
import { delivered, first, MIN, ownerOf, queue, T0, UNKNOWN } from '../../conformance/mail.ts'
import { idleRecorder } from '../../support/idle-recorder.ts'
import { RETENTION } from '../../support/operate.ts'
import { realClock } from '../../support/real-clock.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

const BOB = 'bob@far.example'
const LATER = T0 + 7 * 24 * 60 * MIN

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

const labelsOf = (name: string) => ({ name, program: '1.0.0', settings: '', hostname: '', draining: false })

/** A message leaves, whose second recipient is bounced. */
async function bounces(store: QueueStore): Promise<void> {
  const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: BOB }] })
  const last = { ...UNKNOWN, reason: `<${BOB}>: no such user` }
  const bounced = { recipient: recipientId(id, 1), state: 'bounced' as const, at: T0 + 1, attempts: 1, last }
  const recipients = [delivered(first(id), T0 + 1), bounced]
  await store.settle({ owner: ownerOf(store), message: id, recipients, attempts: [], keepUntil: LATER })
}

/** A node with operations, whose clock is `ahead.by` ms ahead. `throttle` is called between two slices. */
async function openNode(url: DatabaseUrl, name: string, throttle: () => Promise<void>) {
  const queueOfNode = await openPostgresStore({ url, durability: 'primary', labels: labelsOf(name), clock: realClock })
  const { store, reader, node, keys } = queueOfNode
  const nodes = new PostgresNodeTable({ me: node, terms: { url, durability: 'primary' }, clock: realClock, keys })
  const ahead = { by: 0 }
  const clock: Clock = {
    now: () => realClock.now() + ahead.by,
    monotonic: () => realClock.monotonic(),
    after: (delay, call) => realClock.after(delay, call),
    alarm: (at, call) => realClock.alarm(at, call),
    zone: (at) => realClock.zone(at),
    wall: realClock.wall,
  }
  const policies = new DestinationPolicies(configFrom({}, 'mx.us.example').config)
  const operations = new Operations({
    store,
    reader,
    clock,
    throttle,
    random: seededRandom(1),
    recorder: idleRecorder,
    events: new Events(() => clock.wall.now()),
    scheduler: storedScheduler(store, reader, idleRecorder),
    policies: () => policies,
    retention: () => RETENTION,
  })
  const close = async (): Promise<void> => {
    await nodes.close()
    await queueOfNode.close()
  }
  return { store, reader, node, nodes, ahead, operations, close }
}

describe.skipIf(WITHOUT_POSTGRES.skip)(`erasures${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()

  /** `having` names the tables with a text. */
  const directTo = async (url: DatabaseUrl) => {
    const direct = await connectTo(url)
    const tables = await direct.query<{ name: string }>(`select tablename as name from pg_tables where schemaname = current_schema()`, [])
    const having = async (text: string): Promise<readonly string[]> => {
      const found: string[] = []
      for (const { name } of tables) {
        const like = [`%${text}%`, `%${Buffer.from(text).toString('hex')}%`]
        const rows = await direct.query(`select 1 from "${name}" t where t::text ilike $1 or t::text ilike $2 limit 1`, like)
        if (rows.length > 0) found.push(name)
      }
      return found.toSorted()
    }
    return { direct, having }
  }

  test('no table has the address of a recipient, as text or as octets', async () => {
    const url = await emptyQueue()
    const { direct, having } = await directTo(url)
    const { store, close } = await openPostgresStore({ url, durability: 'primary', labels: labelsOf('n1'), clock: realClock })
    await bounces(store)
    await store.records.audit.add({ at: T0, who: 'root', action: 'hold', arguments: `--recipient=${BOB}`, changed: 1 })
    expect(await having(BOB)).toEqual(expect.arrayContaining(['audit', 'history']))
    const terms = { side: 'recipient', pattern: BOB, before: LATER } as const
    const operation = await store.records.audit.begin(begin('erase'))
    await store.records.erasures.add({ ...terms, operation, stage: null, after: null, until: 0 })
    const round = { operation, at: LATER, matched: 0 }
    for (
      let place: { readonly stage: string | null; readonly after: string | null } | null = { stage: null, after: null };
      place !== null;
    ) {
      const step: ErasureStep | null = await store.departed.erase({ terms, key: 'key', until: LATER, round, ...place })
      if (step === null) throw new Error('the operation has ended')
      place = step.next
    }
    await store.records.erasures.end(operation)
    expect(await having(BOB)).toEqual([])
    expect(await having('ann@far.example')).toContain('history')
    await close()
    await direct.end()
  })

  test('another node goes on with the erasure of a node that is gone, once its time is over, and not before', async () => {
    const url = await emptyQueue()
    const { direct, having } = await directTo(url)
    const { promise: stalled, resolve: goesOn } = Promise.withResolvers<void>()
    const gone = await openNode(url, 'n1', () => stalled)
    const other = await openNode(url, 'n2', () => Promise.resolve())
    await bounces(gone.store)
    const terms = { side: 'recipient', pattern: BOB, before: LATER } as const
    const begun = await gone.operations.erasing.start({ terms, who: 'root', reason: null, request: null })
    const refused = expect(begun.ended).rejects.toThrow(OperationLeft)
    const state = async () => (await other.reader.records.audit.one(begun.id))?.state
    const seen = (await other.nodes.beat())?.nodes.find(({ id }) => id === gone.node)
    expect(await other.nodes.takeOver(gone.node, seen?.beat ?? 0)).not.toBeNull()
    await other.operations.erasing.goOn()
    expect([await state(), (await having(BOB)).length > 0]).toEqual(['running', true])

    other.ahead.by = 2 * MINUTE
    await other.operations.erasing.goOn()
    while ((await other.store.records.erasures.all()).length > 0) await pause(10)
    expect(await other.reader.records.audit.one(begun.id)).toMatchObject({ state: 'done', action: 'erase', changed: 1 })
    expect(await having(BOB)).toEqual([])
    goesOn()
    await refused
    expect(await state()).toBe('done')
    await gone.close()
    await other.close()
    await direct.end()
  })
})
