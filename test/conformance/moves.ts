/**
 * Contract of the store: moves of messages to and from another queue.
 */
import { MOVED_ON, type MovedSubscription } from '../../src/store/outbox/moved-subscription.ts'
import { newProgress } from '../../src/store/outbox/subscription.ts'
import { event, SETTINGS } from './outbox.ts'
import { grant } from './shared-grants.ts'
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { queueIdOf, recipientId, type MessageId } from '../../src/mail/message.ts'
import { inChunks } from '../../src/store/chunks.ts'
import { MemoryMoves } from '../support/memory-moves.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import { NO_RECORDS, renumbered, type Arrival, type MovedMessage, type MoveRound, type MoveStore } from '../../src/store/move-store.ts'
import type { KeptGrant } from '../../src/oauth/shared-grant.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { operate } from '../support/operate.ts'
import {
  attempt,
  bounced,
  claim,
  contentOf,
  deferred,
  delivered,
  first,
  LIFETIME,
  mail,
  MIN,
  ownerOf,
  queue,
  settleOne,
  T0,
  type Subject,
} from './mail.ts'

const ELSEWHERE = { identity: 'elsewhere', name: '/srv/new' }
const CONTENT = Buffer.from('Subject: hi\r\n\r\nhi\r\n')

/** A message as another queue sends it. */
const sent = (moved: MovedMessage, more: Partial<Arrival> = {}): Arrival => ({
  origin: { id: moved.message.id, createdAt: moved.message.createdAt },
  moved,
  staged: null,
  content: inChunks(CONTENT),
  ...more,
})

/** A message of a queue in memory, with a history of everything that a move has to keep. */
async function eventful(): Promise<MovedMessage> {
  const maps = emptyQueue()
  const { store } = openMemoryStore(maps)
  const to = ['ann', 'bob', 'eve'].map((name) => ({
    address: `${name}@far.example`,
    notify: ['failure'] as const,
    orcpt: `rfc822;${name}`,
  }))
  const entry = mail(store, { to, leased: true, content: [CONTENT] })
  const times = {
    notBefore: T0,
    holdRequest: 'for;1',
    expires: T0 + LIFETIME,
    deliverBy: T0 + LIFETIME,
    byMode: 'RT' as const,
    maxAttempts: 7,
  }
  const message = {
    ...entry.message,
    ...times,
    envid: 'e1',
    share: 'app',
    ret: 'hdrs' as const,
    bodyType: '8bitmime' as const,
    messageId: '<1@us.example>',
    subject: 'Invoice',
    fromHeader: 'Ann <ann@us.example>',
  }
  await store.enqueue({ ...entry, message })
  const [ann, bob, eve] = [0, 1, 2].map((n) => recipientId(message.id, n)) as [number, number, number]
  await store.settle({
    owner: ownerOf(store),
    message: message.id,
    recipients: [deferred(ann, T0 + 5 * MIN + 123, { steps: 3, attempts: 4 }), delivered(bob, T0 + 1), deferred(eve, T0 + 7 * MIN + 1)],
    attempts: [attempt(ann, T0 + 1), attempt(bob, T0 + 1, 'delivered'), attempt(eve, T0 + 2), attempt(ann, T0 + 3)],
    warnAt: T0 + 240 * MIN + 7,
  })
  await operate(store, message.id, { kind: 'flush', now: T0 + MIN })
  await operate(store, message.id, { kind: 'expire' })
  const [moved] = (await begin(new MemoryMoves(maps))).messages
  if (moved === undefined) throw new Error('the message is not movable')
  return { ...moved, warnings: 1 }
}

const begin = (moves: MoveStore, more: { after?: MessageId; limit?: number; withNoticesDue?: boolean } = {}): Promise<MoveRound> =>
  moves.beginMove({ target: ELSEWHERE, after: 0, through: Number.MAX_SAFE_INTEGER, limit: 64, withNoticesDue: false, ...more })

export function movable(subject: () => Subject): void {
  const moves = (): MoveStore => {
    const { moves: port } = subject()
    if (port === undefined) throw new Error('the subject has no port of moves')
    return port
  }
  const detailsOf = (id: MessageId) => subject().reader.details(formatQueueId(T0, id))
  const everything = () => subject().reader.list(ANY_MESSAGE, { after: 0, limit: 100 })
  const admit = async (moved: MovedMessage, more: Partial<Arrival> = {}) => {
    const [queueId] = await moves().takeMoved('a', [sent(moved, more)], [])
    await moves().admitMoved('a', 64, T0)
    return queueId ?? ''
  }

  test('a message that is out of the queue is not claimed, listed, expired or changed', async () => {
    const { store } = subject()
    const id = await queue(store)
    const { messages, next } = await begin(moves())
    expect(messages.map(({ message }) => message.id)).toEqual([id])
    expect(next).toBeNull()
    expect(await everything()).toEqual([])
    expect(await claim(store, T0 + LIFETIME)).toEqual({ requests: [], nextDueAt: null })
    expect(await store.claimExpired(T0 + LIFETIME, 10)).toEqual([])
    for (const kind of ['hold', 'release', 'restore', 'expire'] as const)
      expect(await operate(store, id, { kind })).toEqual({ changed: false, woken: [] })
    expect(await moves().moveState()).toMatchObject({ leaving: 1, arriving: 0, movedTo: null })
    expect((await moves().leaving(10)).map(({ target, moved }) => [target, moved.message.id])).toEqual([[ELSEWHERE, id]])
    expect((await contentOf(store, id)).equals(CONTENT)).toBe(true)
  })

  test('a message that is put back is as before', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    await settleOne(store, id, deferred(first(id), T0 + 5 * MIN + 1, { steps: 2, attempts: 3 }))
    await settleOne(store, id, delivered(recipientId(id, 1), T0))
    const before = await detailsOf(id)
    const [taken] = (await begin(moves())).messages
    expect(await moves().undoMove([id, 999])).toEqual([{ destination: 'far.example', dueAt: T0 + 5 * MIN + 1 }])
    expect(await detailsOf(id)).toEqual(before)
    expect((await begin(moves())).messages).toEqual([taken])
  })

  test('rounds follow each other by id, up to their limit and to the last id', async () => {
    const { store } = subject()
    const ids = [await queue(store), await queue(store), await queue(store)] as const
    const round = await begin(moves(), { limit: 1 })
    expect(round.messages.map(({ message }) => message.id)).toEqual([ids[0]])
    const rest = await moves().beginMove({ target: ELSEWHERE, after: round.next ?? 0, through: ids[1], limit: 64, withNoticesDue: false })
    expect([rest.messages.map(({ message }) => message.id), rest.next]).toEqual([[ids[1]], null])
    expect((await everything()).map(({ message }) => message.id)).toEqual([ids[2]])
  })

  test('a message in delivery stays; one with a notice due stays unless nobody sends notices', async () => {
    const { store } = subject()
    await queue(store, { leased: true })
    const failing = await queue(store, { leased: true })
    await settleOne(store, failing, bounced(first(failing), T0))
    expect((await begin(moves())).messages).toEqual([])
    expect((await begin(moves(), { withNoticesDue: true })).messages).toMatchObject([
      { message: { id: failing }, recipients: [{ noticeDue: 'failure', state: 'bounced' }] },
    ])
    expect(await store.noticesDueOf(failing)).toBeUndefined()
  })

  test('held, corrupt and deleted messages move as they are', async () => {
    const { store } = subject()
    const [held, corrupt, deleted] = [await queue(store, { hold: true }), await queue(store), await queue(store)]
    await store.quarantine(corrupt, 'the sender is not text')
    await operate(store, deleted, { kind: 'delete', now: T0 + MIN, purge: false })
    const { messages } = await begin(moves())
    expect(messages).toMatchObject([
      { placement: 'hold', recipients: [{ state: 'parked' }] },
      { placement: 'corrupt', recipients: [{ state: 'parked' }] },
      { placement: 'trash', deletedAt: T0 + MIN, recipients: [{ state: 'parked' }] },
    ])
    await moves().undoMove([held, corrupt, deleted])
    expect((await Promise.all([held, corrupt, deleted].map(detailsOf))).map((one) => one?.queue)).toEqual(['hold', 'corrupt', 'trash'])
  })

  test('a message that the other queue has is one row of history here, and its content is deleted', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    await settleOne(store, id, deferred(first(id), T0 + MIN))
    const auditedAs = await store.records.audit.add({ at: T0, who: 'op', action: 'move', arguments: '--to=/srv/new', changed: 0 })
    await begin(moves())
    for (let repeated = 0; repeated < 2; repeated++) await moves().finishMove([{ id, as: '4SVLCh0sf8z7Qhl' }], T0 + 2 * MIN, auditedAs)
    expect(await detailsOf(id)).toMatchObject({
      queue: 'gone',
      leftAt: T0 + 2 * MIN,
      recipients: [{ state: 'removed', last: { reason: 'moved to /srv/new as 4SVLCh0sf8z7Qhl' } }],
      history: [{ outcome: 'deferred' }],
    })
    expect(await subject().reader.records.audit.after({ after: 0, limit: 10 })).toMatchObject([{ action: 'move', changed: 1 }])
    expect(await moves().moveState()).toMatchObject({ leaving: 0 })
    expect(await moves().undoMove([id])).toEqual([])
    await expect(contentOf(store, id))
      .rejects.toThrow('missing')
      .catch(async () => expect((await contentOf(store, id)).length).toBe(0))
  })

  test('a content that two messages share is kept until neither needs it', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    await store.giveBack([recipientId(id, 1)], ownerOf(store))
    const newId = store.nextId()
    await operate(store, id, { kind: 'requeue', now: T0, newId, expiresAt: T0 + LIFETIME })
    await begin(moves())
    await settleOne(store, id, delivered(first(id), T0))
    expect(await detailsOf(id)).toMatchObject({ queue: 'gone' })
    expect((await contentOf(store, id)).equals(CONTENT)).toBe(true)
    await moves().undoMove([newId])
    expect(await detailsOf(newId)).toMatchObject({ queue: 'incoming' })
    expect((await contentOf(store, id)).equals(CONTENT)).toBe(true)
  })

  test('scheduled × move: a scheduled message of another queue is scheduled here', async () => {
    const { store, reader } = subject()
    const moved = await eventful()
    const scheduled = { ...moved, message: { ...moved.message, notBefore: T0 + 2 * MIN, scheduled: true } }
    await moves().takeMoved('a', [sent(scheduled)], [])
    const [id = 0] = (await moves().admitMoved('a', 64, T0)).messages
    expect(await reader.list({ ...ANY_MESSAGE, queue: 'scheduled' }, { after: 0, limit: 9 })).toMatchObject([{ message: { id } }])
    expect(await store.endSchedules(T0 + MIN)).toEqual({ ended: [], next: T0 + 2 * MIN })
    expect(await store.endSchedules(T0 + 2 * MIN)).toEqual({ ended: [id], next: null })
  })

  test('a message of another queue is invisible until it is admitted, and then complete', async () => {
    const { store } = subject()
    const moved = await eventful()
    const [queueId = ''] = await moves().takeMoved('a', [sent(moved)], [])
    expect(await everything()).toEqual([])
    expect(await claim(store, T0 + LIFETIME)).toEqual({ requests: [], nextDueAt: null })
    expect(await moves().moveState()).toMatchObject({ arriving: 1 })
    expect((await moves().admitMoved('b', 64, T0)).messages).toEqual([])
    const { messages, woken } = await moves().admitMoved('a', 64, T0)
    expect(woken).toEqual([{ destination: 'far.example', dueAt: T0 + MIN }])
    const [id = 0] = messages
    expect(queueIdOf({ id, createdAt: T0 })).toBe(queueId)
    expect((await contentOf(store, (await detailsOf(id))?.message.contentId ?? 0)).equals(CONTENT)).toBe(true)
    const [again] = (await begin(moves())).messages
    const { message, recipients, attempts } = moved
    expect(again).toEqual({
      ...moved,
      message: { ...message, id, contentId: again?.message.contentId },
      recipients: recipients.map((one, n) => ({ ...one, id: recipientId(id, n) })),
      attempts: attempts.map((one) => ({ ...one, recipient: recipientId(id, one.recipient - recipientId(message.id, 0)) })),
    })
  })

  test('a message keeps its id where the id is free, and no new message gets that id', async () => {
    const { store } = subject()
    const moved = await eventful()
    const used = await queue(store)
    const at = (id: MessageId): MovedMessage => renumbered(moved, { ...moved.message, id })
    expect(await admit(at(used))).not.toBe(formatQueueId(T0, used))
    expect(await admit(at(used + 1_000_000))).toBe(formatQueueId(T0, used + 1_000_000))
    const [next] = await store.nextIds(1)
    expect(next).toBeGreaterThan(used + 1_000_000)
    expect((await everything()).length).toBe(3)
  })

  test('ids that are kept for a source are not reserved', async () => {
    const { store } = subject()
    await moves().keepIds('a', 70_000)
    const [next = 0] = await store.nextIds(1)
    expect(next).toBeGreaterThan(70_000)
  })

  test('a message that is sent again is not stored again, also after it was admitted and has left', async () => {
    const { store } = subject()
    const moved = await eventful()
    const send = () => moves().takeMoved('a', [sent(moved)], [])
    const queueIds = [await send(), await send()]
    expect(queueIds[0]).toEqual(queueIds[1])
    await moves().admitMoved('a', 64, T0)
    const [staged = 0] = await store.nextIds(1)
    await store.stage(staged, 0, inChunks(CONTENT))
    expect(await moves().takeMoved('a', [sent(moved, { staged })], [])).toEqual(queueIds[0])
    expect((await everything()).length).toBe(1)
    expect(await moves().moveState()).toMatchObject({ arriving: 0 })
    const { id, createdAt } = moved.message
    const known = [
      { id, createdAt },
      { id, createdAt: createdAt + 1 },
    ]
    expect(await moves().originsOf('a', known)).toEqual([queueIds[0]?.[0], null])
    expect(await moves().originsOf('b', known)).toEqual([null, null])
    await store.upkeep.prune({ historyBefore: T0 + 1, historyCount: 10, trashBefore: 0, requestsBefore: 0 })
    expect(await moves().originsOf('a', known)).toEqual([null, null])
  })

  test('a long content is staged before its message', async () => {
    const { store } = subject()
    const long = Buffer.alloc(150_000, 'x')
    const chunks = inChunks(long)
    const [staged = 0] = await store.nextIds(1)
    await store.stage(staged, 0, chunks.slice(0, 2))
    const moved = await eventful()
    await admit({ ...moved, message: { ...moved.message, size: long.length } }, { staged, content: chunks.slice(2) })
    const [listed] = await everything()
    expect((await contentOf(store, listed?.message.contentId ?? 0)).equals(long)).toBe(true)
  })

  test('the state of a destination moves with its mail, unless the destination has one here', async () => {
    const { store } = subject()
    const record = (name: string, by: string) => ({
      name,
      deadUntil: null,
      probeInterval: null,
      siteStatus: null,
      suspension: { by, until: null, reason: null },
    })
    await store.saveDestination(record('slow.example', 'here'))
    await moves().takeMoved('a', [sent(await eventful())], [record('far.example', 'there'), record('slow.example', 'there')])
    expect((await store.destinations()).toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
      record('far.example', 'there'),
      record('slow.example', 'here'),
    ])
  })

  test('an empty queue can be marked as moved; a move to it brings it into use again', async () => {
    const { store } = subject()
    const id = await queue(store)
    expect(await moves().markMoved('/srv/new')).toBe(false)
    await begin(moves())
    expect(await moves().markMoved('/srv/new')).toBe(false)
    await moves().finishMove([{ id, as: 'X' }], T0, null)
    expect(await moves().markMoved('/srv/new')).toBe(true)
    expect(await moves().moveState()).toMatchObject({ movedTo: '/srv/new' })
    await expect(queue(store)).rejects.toThrow('moved to another place')
    await moves().takeMoved('a', [sent(await eventful())], [])
    expect(await moves().moveState()).toMatchObject({ movedTo: null, arriving: 1 })
    expect(await moves().markMoved('/srv/new')).toBe(false)
  })

  test('numbers of the history ascend, also after all of it was pruned', async () => {
    const { store } = subject()
    const depart = async () => {
      const id = await queue(store, { leased: true })
      await settleOne(store, id, delivered(first(id), T0))
    }
    let last = 0
    for (let round = 1; round <= 3; round++) {
      await depart()
      await depart()
      const [one = 0, other = 0, ...more] = (await moves().historyAfter(0, 10)).map(({ seq }) => seq)
      expect([one > last, other > one, more]).toEqual([true, true, []])
      last = other
      await store.upkeep.prune({ historyBefore: T0 + 1, historyCount: 10, trashBefore: 0, requestsBefore: 0 })
    }
  })

  test('history and audit log of another queue are added once', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    await settleOne(store, id, delivered(first(id), T0))
    await store.records.audit.add({ at: T0, who: 'op', action: 'hold', arguments: '--all', changed: 3 })
    const rows = await moves().historyAfter(0, 10)
    expect(rows).toMatchObject([{ message: id, leftAt: T0, record: { recipients: [{ state: 'delivered' }] } }])
    expect(await moves().historyAfter(rows[0]?.seq ?? 0, 10)).toEqual([])
    const theirs = rows.map((row) => ({ ...row, seq: 7, message: id + 500 }))
    const unset = { node: null, requestId: 'r-1', expected: null, reason: null, error: null, undoUntil: null, undoes: null, undoneBy: null }
    const counts = { changed: 1, matched: 2, inTransfer: 0, unknown: 0 }
    const audit = [
      { ...unset, ...counts, id: 5, at: T0, lastAt: T0 + 1, who: 'them', action: 'flush', arguments: 'X', state: 'running' as const },
    ]
    for (let repeated = 0; repeated < 2; repeated++)
      await moves().takeRecords('a', {
        ...NO_RECORDS,
        history: theirs,
        audit,
      })
    expect(await moves().recordsTaken('a')).toEqual({ history: 7, audit: 5 })
    expect(await moves().recordsTaken('b')).toEqual({ history: 0, audit: 0 })
    expect((await moves().historyAfter(0, 10)).map(({ message }) => message)).toEqual([id, id + 500])
    // No process carries out the operations of another queue any more.
    expect(await subject().reader.records.audit.after({ after: 0, limit: 10 })).toMatchObject([
      { who: 'op' },
      { who: 'them', matched: 2, state: 'failed' },
    ])
  })

  test('subscriptions of another queue begin after the newest event, and are told what was left behind', async () => {
    const { store, reader } = subject()
    const secrets = (secret: string) => [{ secret, until: null }]
    await store.outbox.subscribe({ name: 'own', settings: { ...SETTINGS, secrets: secrets('whsec_own') }, at: T0, by: 'op' })
    await store.outbox.recordEvents([event('store.trouble'), event('store.recovered')])
    while (await store.outbox.numberEvents());
    const lost = { from: 4, to: 9, count: 5 }
    const moved = (name: string, more: Partial<MovedSubscription> = {}): MovedSubscription => ({
      name,
      settings: { ...SETTINGS, types: ['store.*'], secrets: secrets('whsec_app') },
      createdAt: T0 - 5,
      createdBy: 'them',
      state: 'active',
      why: null,
      lost: null,
      ...more,
    })
    const take = async (...subscriptions: readonly MovedSubscription[]) => {
      await moves().takeRecords('a', {
        ...NO_RECORDS,
        subscriptions,
      })
      return (await reader.allSubscriptions()).find(({ name }) => name === 'app')
    }
    expect(await take(moved('app'), moved('own'))).toMatchObject({ owner: 'command', createdAt: T0 - 5, createdBy: 'them', behind: 0 })
    await store.outbox.wantedTypes()
    await store.outbox.recordEvents([event('store.trouble')])
    while (await store.outbox.numberEvents());
    // The final step of the move, repeated.
    await take(moved('app', { lost }))
    expect(await take(moved('app', { lost }))).toMatchObject({ behind: 1, lost: [lost], settings: { types: ['store.*'] } })
    expect(await store.outbox.pullEvents('app', 10)).toMatchObject({ lost, events: [{ type: 'store.trouble' }] })
    // This queue was left, and mail comes back.
    const away = { ...newProgress(2), state: 'disabled', why: MOVED_ON } as const
    expect(
      await store.outbox.saveProgress('app', 2, { progress: away, told: null, parked: [{ seq: 2, tries: 6, at: T0, answer: '400' }] }),
    ).toBe(true)
    expect(await take(moved('app'))).toMatchObject({ behind: 0, parked: 0, lost: [], progress: newProgress(3) })
    const [own] = (await reader.allSubscriptions()).filter(({ name }) => name === 'own')
    expect(own).toMatchObject({ settings: { types: [], secrets: secrets('whsec_own') }, createdBy: 'op' })
  })

  test('access entries and tokens of another queue are added unless their keys are in use here', async () => {
    const { store, reader } = subject()
    const entry = { subject: 'sender' as const, key: 'a@b.test', action: 'HOLD', addedAt: T0, addedBy: 'op', expiresAt: null }
    const unset = { content: false, destinations: null, expiresAt: null, lastUsedAt: null }
    const token = { ...unset, name: 'ci', role: 'viewer' as const, hash: 'aa', addedAt: T0, addedBy: 'op' }
    await store.records.access.set(entry)
    await store.records.tokens.add(token)
    const moved = { ...entry, key: 'b.test', action: 'REJECT', expiresAt: T0 + 1000 }
    const other = { ...token, name: 'cd', hash: 'bb', content: true, destinations: '*.test', lastUsedAt: T0 }
    const access = [{ ...entry, action: 'REJECT' }, moved]
    const tokens = [{ ...token, hash: 'cc' }, { ...token, name: 'ce' }, other]
    for (let repeated = 0; repeated < 2; repeated++)
      await moves().takeRecords('a', {
        ...NO_RECORDS,
        access,
        tokens,
      })
    expect(await reader.records.access.all()).toEqual([entry, moved])
    expect(await reader.records.tokens.all()).toEqual([other, token])
  })

  test('suspensions of providers are added, but none beside one that is here', async () => {
    const { store, reader } = subject()
    const [here, there] = ['ann', 'bob'].map((by) => ({ by, until: null, reason: null }))
    if (here === undefined || there === undefined) throw new Error('two suspensions are expected')
    await store.records.providers.suspend({ provider: 'big', suspension: here })
    const suspensions = [
      { provider: 'big', suspension: there },
      { provider: 'small', suspension: there },
    ]
    for (let repeated = 0; repeated < 2; repeated++) await moves().takeRecords('a', { ...NO_RECORDS, suspensions })
    const kept = (await reader.records.providers.suspensions()).map(({ provider, suspension: { by } }) => [provider, by] as const)
    expect(new Map(kept)).toEqual(
      new Map([
        ['big', 'ann'],
        ['small', 'bob'],
      ]),
    )
  })

  test('refresh tokens of another queue are added, or continue the same chain', async () => {
    const { store, reader } = subject()
    const key = { name: 'm365', user: '' }
    const take = async (...grants: readonly KeptGrant[]) =>
      moves().takeRecords('a', {
        ...NO_RECORDS,
        grants,
      })
    const other = { name: 'google', user: 'ann', ...grant(4) }
    await store.records.grants.claim('m365', '', { now: T0, until: T0 + MIN })
    await take(other, { ...key, ...grant(7) })
    expect(await reader.records.grants.all()).toEqual([other, { ...key, ...grant(7) }])
    await take({ ...key, ...grant(6) }, { ...key, ...grant(9, { origin: 'another' }) })
    expect(await store.records.grants.read('m365', '')).toEqual(grant(7))
    for (let repeated = 0; repeated < 2; repeated++) await take({ ...key, ...grant(9) })
    expect(await store.records.grants.read('m365', '')).toEqual(grant(9))
  })
}

/** Contract of moves across a crash. */
export function movesAcrossRestarts(subject: () => Subject, replace: (next: Subject) => void): void {
  test('messages between two queues survive a crash on either side', async () => {
    const { store, moves, crash } = subject()
    if (moves === undefined || crash === undefined) throw new Error('this store dies with its owner')
    const id = await queue(store)
    const moved = await eventful()
    await begin(moves)
    const queueIds = await moves.takeMoved('a', [sent(renumbered(moved, { ...moved.message, id: id + 100 }))], [])
    const { identity } = await moves.moveState()
    const next = await crash()
    replace(next)
    if (next.moves === undefined) throw new Error('the subject has no port of moves')
    expect(await next.moves.moveState()).toEqual({ identity, leaving: 1, arriving: 1, movedTo: null, last: 0 })
    expect(await next.moves.originsOf('a', [{ id: id + 100, createdAt: T0 }])).toEqual(queueIds)
    expect((await next.moves.admitMoved('a', 64, T0)).messages.length).toBe(1)
    await next.moves.undoMove([id])
    const listed = await next.reader.list(ANY_MESSAGE, { after: 0, limit: 10 })
    for (const { message } of listed) expect((await contentOf(next.store, message.contentId)).equals(CONTENT)).toBe(true)
    expect(listed.length).toBe(2)
  })
}
