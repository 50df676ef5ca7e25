/** Moves to and from a queue that several nodes share: who may move, who is told, and what a lost answer leaves. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import { messageOf, type MessageId } from '../../../src/mail/message.ts'
import { inChunks } from '../../../src/store/chunks.ts'
import { SHARDS, shardOf } from '../../../src/store/membership/shards.ts'
import { NO_RECORDS, type Arrival, type MovableStore, type MovedMessage } from '../../../src/store/move-store.ts'
import { openPostgresStore, type PostgresQueue } from '../../../src/store/postgres/open-store.ts'
import { PostgresNodeTable } from '../../../src/store/postgres/postgres-node-table.ts'
import type { Connection } from '../../../src/store/postgres/session/database-connection.ts'
import { realClock } from '../../support/real-clock.ts'
import { contentOf, delivered, first, queue, settleOne, T0, LIFETIME, bounced } from '../../conformance/mail.ts'
import { startLossyProxy, type LossyProxy } from '../../support/lossy-proxy.ts'
import { operate } from '../../support/operate.ts'
import { connectTo, urlOf, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

const ELSEWHERE = { identity: 'elsewhere', name: '/srv/new' }
const CONTENT = Buffer.from('Subject: hi\r\n\r\nhi\r\n')
const FAR = shardOf('far.example')
const selection = { target: ELSEWHERE, after: 0, through: Number.MAX_SAFE_INTEGER, limit: 64, withNoticesDue: true }

const sent = (moved: MovedMessage): Arrival => ({
  origin: { id: moved.message.id, createdAt: moved.message.createdAt },
  moved,
  staged: null,
  content: inChunks(CONTENT),
})

describe.skipIf(WITHOUT_POSTGRES.skip)(`moves among nodes${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue, server } = usePostgres()
  let url: DatabaseUrl
  let direct: Connection
  let closing: (() => Promise<unknown>)[] = []

  beforeEach(async () => {
    url = await emptyQueue()
    direct = await connectTo(url, 'deferd test', false)
    closing = [() => direct.end()]
  })
  afterEach(async () => {
    for (const close of closing.toReversed()) await close()
  })

  async function join(at = url): Promise<PostgresQueue & { readonly nodes: PostgresNodeTable }> {
    const labels = { name: 'n', program: '1.0.0', settings: '', hostname: '', draining: false }
    const node = await openPostgresStore({ url: at, durability: 'primary', labels, clock: realClock, tallyKeptFor: 0 })
    const nodes = new PostgresNodeTable({ me: node.node, terms: { url, durability: 'primary' }, clock: realClock, keys: node.keys })
    closing.push(async () => (await node.destroy(), nodes.close()))
    return { ...node, nodes }
  }

  /** A message that another queue sends. */
  async function foreign(store: MovableStore, more: { leased?: boolean } = {}): Promise<MovedMessage> {
    const id = await queue(store, more)
    if (more.leased === true) await settleOne(store, id, bounced(first(id), T0))
    const [moved] = (await store.beginMove(selection)).messages
    await store.finishMove([{ id, as: 'X' }], T0, null)
    if (moved === undefined) throw new Error('the message does not move')
    return moved
  }

  const count = async (what: string): Promise<number> =>
    (await direct.query<{ n: number }>(`select count(*)::int as n from ${what}`))[0]?.n ?? 0

  test('the last node that claims the moves is the mover; an earlier one is refused, and nothing is changed', async () => {
    const [a, b] = [await join(), await join()]
    await queue(a.store)
    const moved = await foreign(a.store)
    await queue(a.store)
    await a.store.claimMoves(null)
    await a.store.claimMoves('a')
    await b.store.claimMoves(null)
    await b.store.claimMoves('a')
    const refused = [
      () => a.store.beginMove(selection),
      () => a.store.leaving(1),
      () => a.store.undoMove([1]),
      () => a.store.finishMove([], T0, null),
      () => a.store.markMoved('/srv/new'),
      () => a.store.keepIds('a', 1_000_000),
      () => a.store.takeMoved('a', [sent(moved)], []),
      () => a.store.originsOf('a', [moved.message]),
      () => a.store.admitMoved('a', 1, T0),
      () => a.store.takeRecords('a', NO_RECORDS),
    ]
    for (const call of refused) await expect(call()).rejects.toThrow('has taken this move over')
    expect(await a.store.takeMoved('b', [sent(moved)], [])).toHaveLength(1)
    expect((await b.store.beginMove(selection)).messages).toHaveLength(1)
  })

  test('a claim waits for the transaction of the earlier mover', async () => {
    const { store, node } = await join()
    await store.claimMoves('a')
    await direct.command('begin')
    await direct.query('select node from mover where source = $1 for share', ['a'])
    let isClaimed = false
    const claimed = (await join()).store.claimMoves('a').then(() => (isClaimed = true))
    await expect.poll(() => count(`pg_locks where not granted`)).toBeGreaterThan(0)
    expect([isClaimed, (await direct.query<{ node: number }>('select node from mover'))[0]?.node]).toEqual([false, node])
    await direct.command('commit')
    await claimed
  })

  test('the owners of other shards hear of mail that is admitted or put back, of its notices, and of destinations', async () => {
    const [a, b] = [await join(), await join()]
    await b.nodes.takeShards(SHARDS)
    const moved = await foreign(a.store, { leased: true })
    const waiting = await foreign(a.store)
    await b.nodes.arrivals()
    const record = { name: 'far.example', deadUntil: T0 + 1, probeInterval: 1, suspension: null, siteStatus: null }
    await a.store.takeMoved('a', [sent(moved), sent(waiting)], [record])
    expect(await b.nodes.arrivals()).toEqual({ due: [], notices: [], destinations: [record], providers: [], recalls: [] })
    const { messages, woken } = await a.store.admitMoved('a', 64, T0)
    expect(woken).toEqual([])
    expect(await b.nodes.arrivals()).toEqual({
      due: [{ destination: 'far.example', dueAt: T0, revive: false }],
      notices: [messages[0]],
      destinations: [],
      providers: [],
      recalls: [],
    })
    const out = (await a.store.beginMove(selection)).messages.map(({ message }) => message.id)
    await b.nodes.arrivals()
    await a.store.undoMove(out)
    expect((await b.nodes.arrivals()).due).toEqual([{ destination: 'far.example', dueAt: T0, revive: false }])
    expect(await count(`recipient where shard = ${FAR}`)).toBe(2)
  })

  test('no node gets an id that is kept for another queue, and no id is kept for two', async () => {
    const nodes = [await join(), await join()]
    const fileOfIds = () => direct.query(`select pg_relation_filenode('message_id') as file`)
    const before = await fileOfIds()
    const given: MessageId[] = []
    const asks = Array.from({ length: 20 }, async (_, n) => {
      const store = nodes[n % 2]?.store
      await store?.keepIds(n % 3 === 0 ? 'a' : 'b', 9_000 * (n + 1))
      given.push(...((await store?.nextIds(50)) ?? []))
    })
    await Promise.all(asks)
    const kept = await direct.query<{ first: number; last: number }>('select first, last from kept_ids order by first')
    expect(kept.length).toBeGreaterThan(5)
    for (const [n, range] of kept.entries()) expect(range.first).toBeGreaterThan(kept[n - 1]?.last ?? 0)
    expect(given.filter((id) => kept.some(({ first: from, last }) => id >= from && id <= last))).toEqual([])
    expect(new Set(given).size).toBe(1_000)
    // A sequence that is rewritten fails those who read it at that moment.
    expect(await fileOfIds()).toEqual(before)
  })

  test('a queue that was moved refuses the mail of all nodes; one with mail under way is not moved', async () => {
    const [a, b] = [await join(), await join()]
    await direct.command('begin')
    await direct.query('lock table message in row exclusive mode')
    const marked = a.store.markMoved('/srv/new')
    await expect.poll(() => count('pg_locks where not granted')).toBeGreaterThan(0)
    await direct.query(`insert into message (id, created_at, arrived_at, size, content_id, recipients, home, smtputf8, sender)
      values (99999999, 0, 0, 0, 1, 1, 1, false, '')`)
    await direct.command('commit')
    expect(await marked).toBe(false)
    await queue(b.store)
    await direct.query('delete from message')
    expect(await a.store.markMoved('/srv/new')).toBe(true)
    expect(await a.store.markMoved('/srv/new')).toBe(true)
    await expect(queue(b.store)).rejects.toThrow('the queue was moved to another place')
  })

  test('a content that is shared stays until both messages have left, by delivery or by the move, at once', async () => {
    const { store } = await join()
    for (let n = 0; n < 5; n++) {
      const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
      await store.giveBack([first(id) + 1], store.leaseTerms().owner)
      const newId = store.nextId()
      await operate(store, id, { kind: 'requeue', now: T0, newId, expiresAt: T0 + LIFETIME })
      await store.beginMove(selection)
      expect((await contentOf(store, id)).equals(CONTENT)).toBe(true)
      const other = (await join()).store
      await Promise.all([settleOne(store, id, delivered(first(id), T0)), other.finishMove([{ id: newId, as: 'X' }], T0, null)])
      expect([await count('message'), await count('moving'), await count('chunk')]).toEqual([0, 0, 0])
    }
  })

  test('the end of a move locks the messages that share its content first, as a departure does: the two never wait for each other', async () => {
    const { store } = await join()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    await store.giveBack([first(id) + 1], store.leaseTerms().owner)
    const newId = store.nextId()
    await operate(store, id, { kind: 'requeue', now: T0, newId, expiresAt: T0 + LIFETIME })
    await store.beginMove(selection)
    await direct.query('begin')
    await direct.query('select id from message where id = $1 for update', [id])
    const finished = store.finishMove([{ id: newId, as: 'X' }], T0, null)
    await expect.poll(() => count(`pg_stat_activity where wait_event_type = 'Lock' and application_name like 'deferd % w'`)).toBe(1)
    expect(await direct.query('select message from moving for update nowait')).toEqual([{ message: newId }])
    await direct.query('commit')
    await finished
    expect(await count('moving')).toBe(0)
  })

  describe('whose answer is lost', () => {
    let proxy: LossyProxy
    let store: MovableStore
    let direct2: MovableStore

    beforeEach(async () => {
      proxy = await startLossyProxy(server().port)
      closing.push(() => proxy.close())
      direct2 = (await join()).store
      ;({ store } = await join(urlOf(`postgresql://postgres@127.0.0.1:${proxy.port}/postgres`)))
    })

    /** Loses the answer of a call whose effect the database shows. */
    async function lost<T>(call: () => Promise<T>, effect: string): Promise<T> {
      proxy.dropAnswers('the commit')
      const answer = call()
      await expect.poll(() => count(effect)).toBe(1)
      proxy.cut()
      return answer
    }

    test('each call of a round takes effect once, and answers', async () => {
      const id = await queue(direct2)
      const round = await lost(() => store.beginMove(selection), 'moving')
      expect(round.messages.map(({ message }) => message.id)).toEqual([id])
      const [moved] = round.messages
      if (moved === undefined) throw new Error('the message does not move')
      const queueIds = await lost(() => store.takeMoved('a', [sent(moved)], []), 'origin')
      expect(await store.originsOf('a', [moved.message])).toEqual(queueIds)
      await lost(() => store.finishMove([{ id, as: queueIds[0] ?? '' }], T0, null), 'history')
      await lost(() => store.admitMoved('a', 64, T0), 'message')
      expect([await count('message'), await count('recipient'), await count('history'), await count('origin')]).toEqual([1, 1, 1, 1])
      await store.beginMove(selection)
      const [arrived] = await direct.query<{ id: number }>('select message as id from moving')
      await lost(() => store.undoMove([arrived?.id ?? 0]), 'message')
      const rows = await direct.query<{ id: number }>('select id from recipient')
      expect(rows.map((row) => messageOf(row.id))).toEqual([arrived?.id])
      expect(await direct.query('select sum(accepted)::int as accepted from traffic')).toEqual([{ accepted: 1 }])
    })
  })
})
