/** Contract of the store: audit log, operations as durable records, requests and access tokens. */
import { expect, test } from 'vitest'
import type { AccessEntry } from '../../src/store/records/access-entry.ts'
import type { AccessToken } from '../../src/store/records/access-token.ts'
import { ANY_ENTRY, RequestRepeated, type NewOperation } from '../../src/store/records/audit-log.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import type { Operation } from '../../src/store/message-operation.ts'
import { claim, mail, MIN, queue, T0, type Subject } from './mail.ts'
import type { StsPolicy } from '../../src/store/records/sts-policy.ts'
import { DAY } from '../../src/system/clock.ts'

/** An operation that begins. */
export const begin = (action: string, more: Partial<NewOperation> = {}): NewOperation => ({
  at: T0,
  who: 'root',
  action,
  arguments: '--all',
  reason: null,
  expected: null,
  undoUntil: null,
  undoes: null,
  request: null,
  ...more,
})

const TOKEN: AccessToken = {
  name: 'ci',
  role: 'operator',
  content: false,
  destinations: 'far.*',
  hash: 'a'.repeat(64),
  addedAt: T0,
  addedBy: 'root',
  expiresAt: T0 + MIN,
  lastUsedAt: null,
}

const REMOVE: Operation = { kind: 'delete', now: T0, purge: false }

export function auditing(subject: () => Subject): void {
  /** Carries out one round on messages. */
  const round = (operation: number, messages: readonly number[], kind: Operation) =>
    subject().store.operate(
      messages.map((message) => ({ message, operation: kind })),
      { operation, at: T0, matched: messages.length },
    )
  const operated = async (action: string, messages: readonly number[], kind: Operation) => {
    const id = await subject().store.records.audit.begin(begin(action))
    await round(id, messages, kind)
    return id
  }
  const placed = async (id: number) => (await subject().reader.placedBy(id, { after: 0, limit: 10 })).messages.map((one) => one.id)
  const queueOf = async (id: number) => (await subject().reader.find(ANY_MESSAGE, { after: id - 1, through: id, limit: 1 }))[0]?.queue

  test('an operation is running until it ends, and then changes nothing', async () => {
    const { store, reader } = subject()
    const [one, two] = [await queue(store), await queue(store)]
    const terms = { reason: 'too old', expected: 2, undoUntil: T0 + MIN }
    const id = await store.records.audit.begin(begin('hold', { ...terms, requestId: 'r-1' }))
    const counts = { changed: 0, matched: 0, inTransfer: 0, unknown: 0 }
    const record = {
      id,
      at: T0,
      lastAt: T0,
      who: 'root',
      action: 'hold',
      arguments: '--all',
      undoes: null,
      undoneBy: null,
      error: null,
      requestId: 'r-1',
    }
    const node = expect.toSatisfy((name) => name === null || name !== '')
    expect(await reader.records.audit.one(id)).toEqual({ ...terms, ...counts, ...record, node, state: 'running' })
    expect(await round(id, [one], { kind: 'hold' })).toMatchObject([{ changed: true }])
    expect(await store.records.audit.end(id, { state: 'cancelled', at: T0 + MIN, error: 'cancelled by eve' })).toBe(true)
    expect(await store.records.audit.end(id, { state: 'done', at: T0 + 2 * MIN, matched: 9, unknown: 9, error: null })).toBe(false)
    expect(await round(id, [two], { kind: 'hold' })).toBeNull()
    expect([await queueOf(one), await queueOf(two)]).toEqual(['hold', 'incoming'])
    const end = { state: 'cancelled', lastAt: T0 + MIN, changed: 1, matched: 1, unknown: 0, error: 'cancelled by eve' }
    expect(await reader.records.audit.one(id)).toMatchObject(end)
    expect(await reader.records.audit.one(id + 1)).toBeUndefined()
  })

  test('the end of an operation has its counts', async () => {
    const { store, reader } = subject()
    const id = await store.records.audit.begin(begin('hold'))
    expect(await store.records.audit.end(id, { state: 'done', at: T0 + 1, matched: 5, unknown: 2, error: null })).toBe(true)
    expect(await reader.records.audit.one(id)).toMatchObject({ state: 'done', matched: 5, unknown: 2, lastAt: T0 + 1, error: null })
  })

  test('an action that is done has its counts from the begin on', async () => {
    const { store, reader } = subject()
    const id = await store.records.audit.add({ at: T0, who: 'root', action: 'suspend', arguments: 'far.example', changed: 1 })
    expect(await reader.records.audit.one(id)).toMatchObject({ state: 'done', matched: 1, changed: 1, lastAt: T0, undoUntil: null })
  })

  test('the messages of an operation are those that it changed', async () => {
    const { store, reader } = subject()
    const [one, two, gone, untouched] = [await queue(store), await queue(store), await queue(store), await queue(store)]
    await round(await store.records.audit.begin(begin('hold')), [two], { kind: 'hold' })
    const id = await operated('hold', [one, two, gone], { kind: 'hold' })
    await operated('delete', [gone], { kind: 'delete', now: T0, purge: true })
    expect(await placed(id)).toEqual([one])
    expect(await reader.placedBy(id, { after: 0, limit: 1 })).toEqual({ messages: [{ id: one, createdAt: T0 }], next: one })
    expect(await placed(id + 10)).toEqual([])
    expect((await reader.records.audit.on(two)).map(({ action }) => action)).toEqual(['hold'])
    expect((await reader.records.audit.on(gone)).map(({ action }) => action)).toEqual(['delete', 'hold'])
    expect(await reader.records.audit.on(untouched)).toEqual([])
  })

  test('a message that a later operation has placed is not that of an earlier one any more', async () => {
    const { store } = subject()
    const [one, two, three] = [await queue(store), await queue(store), await queue(store)]
    const id = await operated('delete', [one, two, three], REMOVE)
    await operated('restore', [two], { kind: 'restore' })
    const later = await operated('delete', [two], REMOVE)
    expect(await placed(id)).toEqual([one, three])
    expect(await placed(later)).toEqual([two])
    const undo = await store.records.audit.begin(begin('restore', { undoes: id }))
    await round(undo, [one, three], { kind: 'restore' })
    expect(await placed(id)).toEqual([])
    expect(await subject().reader.records.audit.one(id)).toMatchObject({ undoneBy: undo })
    expect(await subject().reader.records.audit.one(undo)).toMatchObject({ undoes: id, undoneBy: null, changed: 2 })
  })

  test('an operation that places no message does not end the undo of an earlier one', async () => {
    const { store } = subject()
    const one = await queue(store)
    const id = await operated('hold', [one], { kind: 'hold' })
    await operated('expire', [one], { kind: 'expire' })
    expect(await placed(id)).toEqual([one])
  })

  test('restored mail is on hold again when it was on hold', async () => {
    const { store } = subject()
    const [held, waiting] = [await queue(store), await queue(store)]
    await operated('hold', [held], { kind: 'hold' })
    await operated('delete', [held, waiting], REMOVE)
    expect(await round(await store.records.audit.begin(begin('restore')), [held, waiting], { kind: 'restore' })).toEqual([
      { changed: true, woken: [] },
      { changed: true, woken: [{ destination: 'far.example', dueAt: T0 }] },
    ])
    expect([await queueOf(held), await queueOf(waiting)]).toEqual(['hold', 'incoming'])
    expect((await claim(store, T0)).requests.map(({ message }) => message.id)).toEqual([waiting])
    await operated('release', [held], { kind: 'release' })
    expect(await queueOf(held)).toBe('incoming')
    await operated('delete', [held], REMOVE)
    await operated('restore', [held], { kind: 'restore' })
    expect(await queueOf(held)).toBe('incoming')
  })

  test('a requeue is an operation on both messages', async () => {
    const { store, reader } = subject()
    const [old, newId] = [await queue(store), store.nextId()]
    const id = await operated('requeue', [old], { kind: 'requeue', now: T0, newId, expiresAt: T0 + MIN })
    expect(await reader.records.audit.one(id)).toMatchObject({ changed: 1 })
    for (const message of [old, newId]) expect(await reader.records.audit.on(message)).toMatchObject([{ id }])
  })

  test('the newest records come first, by filter', async () => {
    const { store, reader } = subject()
    for (const [n, who] of ['ann', 'page:bob', 'page:eve'].entries())
      await store.records.audit.add({
        at: T0 + n,
        who,
        requestId: n === 0 ? null : `r-${n}`,
        action: n === 1 ? 'hold' : 'flush',
        arguments: '',
        changed: 0,
      })
    const running = await store.records.audit.begin(begin('delete', { at: T0 + 3 }))
    const found = async (filter: Partial<typeof ANY_ENTRY>, before: number | null = null, limit = 10) =>
      (await reader.records.audit.before({ ...ANY_ENTRY, ...filter }, { before, limit })).map(({ who }) => who)
    expect(await found({})).toEqual(['root', 'page:eve', 'page:bob', 'ann'])
    expect(await found({}, running, 2)).toEqual(['page:eve', 'page:bob'])
    expect(await found({ who: 'PAGE:*' })).toEqual(['page:eve', 'page:bob'])
    expect(await found({ action: 'flush', since: T0 + 1 })).toEqual(['page:eve'])
    expect(await found({ since: T0 + 1, until: T0 + 2 })).toEqual(['page:bob'])
    expect(await found({ state: 'running' })).toEqual(['root'])
    expect(await found({ who: '100%' })).toEqual([])
    expect(await found({ requestId: 'r-1' })).toEqual(['page:bob'])
    expect(await found({ requestId: 'r-*' })).toEqual([])
  })

  test('a request has its effect once', async () => {
    const { store, reader } = subject()
    const request = { key: 'ci 1', digest: 'b'.repeat(64) }
    const id = await store.records.audit.begin(begin('hold', { request }))
    expect(await reader.records.requests.find('ci 1')).toEqual({ ...request, at: T0, answer: String(id) })
    expect(await reader.records.requests.find('ci 2')).toBeUndefined()
    await expect(store.records.audit.begin(begin('delete', { request }))).rejects.toBeInstanceOf(RequestRepeated)
    expect(await reader.records.audit.before(ANY_ENTRY, { before: null, limit: 10 })).toHaveLength(1)
    const entry = { ...mail(store), request: { ...request, answer: 'no' } }
    await expect(store.enqueue(entry)).rejects.toBeInstanceOf(RequestRepeated)
    expect(await reader.list(ANY_MESSAGE, { after: 0, limit: 10 })).toEqual([])
  })

  test('a request is kept with its message', async () => {
    const { store, reader } = subject()
    const request = { key: 'ci 1', digest: 'c'.repeat(64), answer: '{"queue_id": "X"}' }
    const entries = [mail(store), mail(store)]
    const results = await Promise.allSettled(entries.map((entry) => store.enqueue({ ...entry, request })))
    // The transactions of a database may be committed in any order.
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    const queued = entries.filter((_, n) => results[n]?.status === 'fulfilled').map(({ message }) => message.id)
    expect(await reader.records.requests.find('ci 1')).toEqual({ ...request, at: T0 })
    expect((await reader.list(ANY_MESSAGE, { after: 0, limit: 10 })).map(({ message }) => message.id)).toEqual(queued)
  })

  test('old requests and the messages of old operations are forgotten', async () => {
    const { store, reader } = subject()
    const message = await queue(store)
    const request = { key: 'old', digest: 'd'.repeat(64) }
    const id = await store.records.audit.begin(begin('hold', { request }))
    await round(id, [message], { kind: 'hold' })
    const prune = async (historyBefore: number, requestsBefore: number) => {
      while ((await store.upkeep.prune({ historyBefore, requestsBefore, historyCount: 1_000, trashBefore: 0 })).more);
    }
    await prune(T0, T0)
    expect(await placed(id)).toEqual([message])
    expect(await reader.records.requests.find('old')).toBeDefined()
    await prune(T0 + 1, T0 + 1)
    expect(await placed(id)).toEqual([])
    expect(await reader.records.requests.find('old')).toBeUndefined()
    expect(await reader.records.audit.one(id)).toMatchObject({ changed: 1 })
  })

  test('access entries are kept by subject and key until they are removed or have expired', async () => {
    const { store, reader } = subject()
    const entry: AccessEntry = { subject: 'sender', key: 'a@b.example', action: 'REJECT', addedAt: T0, addedBy: 'ann', expiresAt: T0 + MIN }
    await store.records.access.set(entry)
    await store.records.access.set({ ...entry, subject: 'client', key: '192.0.2', expiresAt: null })
    await store.records.access.set({ ...entry, action: 'HOLD “ü”', addedBy: 'bob' })
    expect(await reader.records.access.all()).toEqual([
      { ...entry, subject: 'client', key: '192.0.2', expiresAt: null },
      { ...entry, action: 'HOLD “ü”', addedBy: 'bob' },
    ])
    expect(await store.records.access.remove('sender', '192.0.2')).toBe(false)
    expect(await store.records.access.remove('client', '192.0.2')).toBe(true)
    expect(await store.records.access.remove('client', '192.0.2')).toBe(false)
    await store.records.access.set({ ...entry, key: 'late', addedAt: T0 + MIN + 1, expiresAt: null })
    expect(await reader.records.access.all()).toEqual([{ ...entry, key: 'late', addedAt: T0 + MIN + 1, expiresAt: null }])
  })

  test('providers of destinations, and the effects of their rules, are kept', async () => {
    const { store, reader } = subject()
    await store.joinProvider('b.example', 'big')
    await store.joinProvider('a.example', 'small')
    await store.joinProvider('a.example', 'big')
    await store.joinProvider('c.example', 'big')
    await store.joinProvider('c.example', null)
    const members = ['a.example', 'b.example'].map((destination) => ({ destination, provider: 'big' }))
    expect(await store.records.providerMembers.all()).toEqual(members)
    expect(await reader.records.providerMembers.all()).toEqual(members)
    expect(await Promise.all(['a.example', 'c.example'].map((name) => reader.records.providerMembers.providerOf(name)))).toEqual([
      'big',
      null,
    ])
    const limit = { rule: '1', action: { kind: 'rate', perMinute: 10 }, until: T0 + DAY, reply: '451 “ü” \u0000 later' } as const
    await store.records.providers.save({ provider: 'small', effects: [limit] })
    await store.records.providers.save({ provider: 'big', effects: [limit] })
    expect((await store.records.providers.all()).map(({ provider }) => provider)).toEqual(['big', 'small'])
    expect(await reader.destinationRecords()).toEqual([])
    const suspension = { rule: 'tss', action: { kind: 'suspend' }, until: T0 + MIN, reply: '421 [TSS04]' } as const
    const own = { name: 'a.example', deadUntil: null, probeInterval: null, siteStatus: null }
    await store.saveDestination({ ...own, suspension: { by: 'root', until: null, reason: null } })
    await store.records.providers.save({ provider: 'big', effects: [limit, suspension] })
    expect((await reader.records.providers.all())[0]?.effects[1]).toEqual(suspension)
    // A suspension of the provider is shown at its destinations, where an operator has not suspended them.
    expect((await reader.destinationRecords()).map(({ name, suspension: one }) => [name, one?.by, one?.until])).toEqual([
      ['a.example', 'root', null],
      ['b.example', 'rule:big.tss', T0 + MIN],
    ])
    // That by an operator comes before that by a rule. An end of its time does not end a later one, which a resumption does.
    const { providers } = store.records
    await providers.suspend({ provider: 'big', suspension: { by: 'root', until: T0 + MIN, reason: 'maintenance' } })
    await providers.suspend({ provider: 'big', suspension: { by: 'ann', until: T0 + 2 * MIN, reason: '“ü” later' } })
    await providers.suspend({ provider: 'small', suspension: { by: 'ann', until: null, reason: null } })
    await providers.endSuspension('big', T0 + MIN)
    await providers.endSuspension('small', T0 + DAY)
    expect(await reader.records.providers.suspensions()).toEqual([
      { provider: 'big', suspension: { provider: 'big', by: 'ann', until: T0 + 2 * MIN, reason: '“ü” later' } },
      { provider: 'small', suspension: { provider: 'small', by: 'ann', until: null, reason: null } },
    ])
    const also = { provider: 'big', by: 'ann', until: T0 + 2 * MIN }
    expect((await reader.destinationRecords()).map(({ name, suspension: one }) => [name, one?.by, one?.provider, one?.also])).toEqual([
      ['a.example', 'root', undefined, also],
      ['b.example', 'ann', 'big', undefined],
    ])
    await providers.endSuspension('big', T0 + 2 * MIN)
    await providers.resume({ provider: 'small', effects: [] })
    expect([await providers.suspensions(), (await providers.all()).map(({ provider }) => provider)]).toEqual([[], ['big']])
    for (const provider of ['big', 'small']) await store.records.providers.save({ provider, effects: [] })
    expect(await store.records.providers.all()).toEqual([])
  })

  test('MTA-STS policies are kept by domain until they are removed, the one fetched last', async () => {
    const { store, reader } = subject()
    const policy: StsPolicy = {
      domain: 'b.example',
      id: '20261101T',
      mode: 'enforce',
      mx: ['mx.b.example', '*.b.example'],
      text: 'version: STSv1\r\nmode: enforce\r\n“ü”\r\n',
      fetchedAt: T0,
      expiresAt: T0 + DAY,
      usedAt: T0,
      failedAt: null,
      failure: null,
    }
    await store.records.stsPolicies.keep(policy)
    await store.records.stsPolicies.keep({ ...policy, domain: 'a.example', mode: 'none', mx: [] })
    expect(await reader.records.stsPolicies.all()).toEqual([{ ...policy, domain: 'a.example', mode: 'none', mx: [] }, policy])
    expect(await reader.records.stsPolicies.of('b.example')).toEqual(policy)
    expect(await reader.records.stsPolicies.of('c.example')).toBeUndefined()
    await store.records.stsPolicies.note({ domain: 'b.example', usedAt: T0 + 2 * DAY })
    await store.records.stsPolicies.note({ domain: 'b.example', usedAt: T0 + MIN })
    await store.records.stsPolicies.note({ domain: 'b.example', failedAt: T0 + MIN, failure: 'status 404' })
    await store.records.stsPolicies.note({ domain: 'c.example', usedAt: T0 })
    const noted = { ...policy, usedAt: T0 + 2 * DAY, failedAt: T0 + MIN, failure: 'status 404' }
    expect(await reader.records.stsPolicies.of('b.example')).toEqual(noted)
    await store.records.stsPolicies.keep({ ...policy, id: 'old', fetchedAt: T0 - 1 })
    expect(await reader.records.stsPolicies.of('b.example')).toEqual(noted)
    await store.records.stsPolicies.keep({ ...policy, id: 'new', mode: 'testing', fetchedAt: T0 + MIN })
    expect(await reader.records.stsPolicies.of('b.example')).toEqual({
      ...policy,
      id: 'new',
      mode: 'testing',
      fetchedAt: T0 + MIN,
      usedAt: T0 + 2 * DAY,
    })
    expect(await store.records.stsPolicies.forget('c.example')).toBe(false)
    expect(await store.records.stsPolicies.forget('b.example')).toBe(true)
    expect((await reader.records.stsPolicies.all()).map(({ domain }) => domain)).toEqual(['a.example'])
  })

  test('tokens are found by hash until they are removed', async () => {
    const { store, reader } = subject()
    expect(await store.records.tokens.add(TOKEN)).toBe(true)
    expect(await store.records.tokens.add({ ...TOKEN, hash: 'e'.repeat(64) })).toBe(false)
    expect(await store.records.tokens.add({ ...TOKEN, name: 'other' })).toBe(false)
    const second: AccessToken = { ...TOKEN, name: 'app', content: true, destinations: null, expiresAt: null, hash: 'f'.repeat(64) }
    expect(await store.records.tokens.add(second)).toBe(true)
    expect(await reader.records.tokens.all()).toEqual([second, TOKEN])
    expect(await reader.records.tokens.byHash(TOKEN.hash)).toEqual(TOKEN)
    expect(await reader.records.tokens.byHash('0'.repeat(64))).toBeUndefined()
    await store.records.tokens.used('ci', T0 + MIN)
    await store.records.tokens.used('ci', T0)
    await store.records.tokens.used('nobody', T0)
    expect(await reader.records.tokens.byHash(TOKEN.hash)).toEqual({ ...TOKEN, lastUsedAt: T0 + MIN })
    expect(await store.records.tokens.remove('ci')).toBe(true)
    expect(await store.records.tokens.remove('ci')).toBe(false)
    expect(await reader.records.tokens.all()).toEqual([second])
  })
}

/** Contract of operations across a crash. */
export function operationsAcrossRestarts(subject: () => Subject, replace: (next: Subject) => void): void {
  test('an operation that a crash has ended is failed, with what it has changed', async () => {
    const { store, crash } = subject()
    const [one, two] = [await queue(store), await queue(store)]
    const ended = await store.records.audit.begin(begin('hold'))
    await store.records.audit.end(ended, { state: 'done', at: T0, matched: 0, unknown: 0, error: null })
    const id = await store.records.audit.begin(begin('delete', { expected: 2 }))
    await store.operate([{ message: one, operation: REMOVE }], { operation: id, at: T0 + 1, matched: 1 })
    if (crash === undefined) throw new Error('this store dies with its owner')
    replace(await crash())
    const { reader, store: next } = subject()
    expect(await reader.records.audit.one(id)).toMatchObject({
      state: 'failed',
      changed: 1,
      matched: 1,
      lastAt: T0 + 1,
      error: expect.stringContaining('ended'),
    })
    expect(await reader.records.audit.one(ended)).toMatchObject({ state: 'done', error: null })
    expect(await next.operate([{ message: two, operation: REMOVE }], { operation: id, at: T0 + 2, matched: 2 })).toBeNull()
    expect(await reader.placedBy(id, { after: 0, limit: 10 })).toEqual({ messages: [{ id: one, createdAt: T0 }], next: null })
  })
}
