import { afterEach, describe, expect, test } from 'vitest'
import { MoveRefused } from '../../src/queue/queue-mover.ts'
import { StoreUnavailable } from '../../src/store/queue-store.ts'
import { ContentUnreadable } from '../../src/store/errors.ts'
import { accessIn, fill, idsIn, inMemory, inPostgres, killedAndRepeated, move, onDisk, seen, type Place } from '../support/moving-queues.ts'
import { T0 } from '../conformance/mail.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'

const places: Place[] = []
const place = (made: Place): Place => (places.push(made), made)
afterEach(() => {
  for (const one of places.splice(0)) one.remove()
})

describe('a move that is killed at any call and repeated brings every message over once, unchanged', () => {
  test('between queues in memory', async () => {
    for (const moment of ['before', 'after'] as const) {
      let call = 1
      while (
        await killedAndRepeated(
          () => inMemory('one'),
          () => inMemory('other'),
          { call, moment },
        )
      )
        call++
      expect(call).toBeGreaterThan(25)
    }
  })

  test('between directories', async () => {
    let call = 5
    while (await killedAndRepeated(onDisk, onDisk, { call, moment: 'after' })) call += 9
    expect(call).toBeGreaterThan(25)
  })
})

describe.skipIf(WITHOUT_POSTGRES.skip)(`a move to and from PostgreSQL${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()
  const shared = (): Place => inPostgres('postgresql://one', () => emptyQueue('one'))
  const other = (): Place => inPostgres('postgresql://other', () => emptyQueue('other'))

  test.each([
    ['from a directory', onDisk, shared],
    ['to a directory', shared, onDisk],
    ['between databases', shared, other],
  ])('that is killed at any call and repeated brings every message over once, unchanged: %s', async (_, from, to) => {
    let call = 7
    while (await killedAndRepeated(from, to, { call, moment: 'after' })) call += 17
    expect(call).toBeGreaterThan(25)
  })

  test('keeps everything, and the states of destinations, there and back', async () => {
    const [source, target] = [place(onDisk()), place(shared())]
    await fill(source)
    const { mail, destinations } = await seen(source)
    const access = await accessIn(source)
    expect([access.entries.length, access.tokens.length, access.grants.length, access.suspensions.length]).toEqual([1, 1, 1, 1])
    await move(source, target, { isFinal: true })
    expect(await seen(target)).toEqual({ mail, destinations })
    expect(await accessIn(target)).toEqual(access)
    const away = await source.open()
    expect(await away.moves.moveState()).toMatchObject({ movedTo: 'postgresql://one' })
    await away.close()
    await move(target, source, { isFinal: true })
    expect(await accessIn(source)).toEqual(access)
    const back = (await seen(source)).mail
    expect(back.map(({ content, recipients }) => [content, recipients.map(({ dueAt }) => dueAt)])).toEqual(
      mail.map(({ content, recipients }) => [content, recipients.map(({ dueAt }) => dueAt)]),
    )
  })
})

test('a queue moves there and back with everything, and the states of its destinations', async () => {
  const [source, target] = [place(onDisk()), place(inMemory('memory'))]
  await fill(source)
  const { mail, destinations } = await seen(source)
  const access = await accessIn(source)
  await move(source, target, { isFinal: true })
  expect(await seen(target)).toEqual({ mail, destinations })
  expect(await accessIn(target)).toEqual(access)
  await move(target, source, { isFinal: true })
  const back = (await seen(source)).mail
  expect(back.map(({ content, recipients }) => [content, recipients.map(({ dueAt }) => dueAt)])).toEqual(
    mail.map(({ content, recipients }) => [content, recipients.map(({ dueAt }) => dueAt)]),
  )
})

test('times are converted when the clock of the target is ahead', async () => {
  const [source, target] = [place(inMemory('one')), place(inMemory('other'))]
  await fill(source)
  const [before] = [(await seen(source)).mail]
  const offset = 3_600_000
  await move(source, target, { offset })
  const times = ({ message, warnAt, deletedAt, recipients, attempts }: (typeof before)[number], earlier: number) => ({
    at: [message.createdAt, message.arrivedAt, warnAt ?? earlier, deletedAt ?? earlier].map((at) => at - earlier),
    due: recipients.map(({ dueAt, keptDueAt, expiresAt }) => [dueAt - earlier, (keptDueAt ?? earlier) - earlier, expiresAt - earlier]),
    settled: recipients.map(({ settledAt }) => (settledAt ?? earlier) - earlier),
    attempts: attempts.map(({ at }) => at - earlier),
  })
  expect((await seen(target)).mail.map((one) => times(one, offset))).toEqual(before.map((one) => times(one, 0)))
})

test('access entries stay until the final move, which converts their ends and keeps those of the target', async () => {
  const [source, target] = [place(inMemory('one')), place(inMemory('other'))]
  await fill(source)
  const [before] = (await accessIn(source)).entries
  const offset = 3_600_000
  await move(source, target, { offset })
  expect(await accessIn(target)).toEqual({ entries: [], tokens: [], grants: [], suspensions: [] })
  const { store } = await target.open()
  const own = { subject: 'sender' as const, key: 'b@us.example', action: 'OK', addedAt: T0, addedBy: 'op', expiresAt: null }
  await store.records.access.set(own)
  await move(source, target, { offset, isFinal: true })
  const ended = (before?.expiresAt ?? 0) + offset
  expect((await accessIn(target)).entries).toMatchObject([{ key: 'a@us.example', expiresAt: ended }, own])
})

test('when the target fails, the messages of the round are back in the source', async () => {
  const [source, target] = [place(inMemory('one')), place(inMemory('other'))]
  await fill(source)
  const before = await seen(source)
  const returned: string[] = []
  const failing = move(source, target, {
    returned: (due) => void returned.push(...due.map(({ destination }) => destination)),
    broken: (method) => (method === 'takeMoved' ? new StoreUnavailable('the disk is full') : null),
  })
  await expect(failing).rejects.toThrow('the disk is full')
  expect(await seen(source)).toEqual(before)
  expect(returned).toContain('far.example')
  expect((await seen(target)).mail).toEqual([])
})

test('while the target cannot be reached, the messages stay between the queues, and no other target gets them', async () => {
  const [source, target, third] = [place(inMemory('one')), place(inMemory('other')), place(inMemory('third'))]
  await fill(source)
  const { mail } = await seen(source)
  const broken = (method: string) => (/takeMoved|originsOf/.test(method) ? new StoreUnavailable('connection lost') : null)
  await expect(move(source, target, { broken })).rejects.toThrow(
    /connection lost; the move was interrupted, and up to 2 messages are between the queues: repeat/,
  )
  const refused = await move(source, third).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(MoveRefused)
  expect(refused).toMatchObject({ exitCode: 75, message: expect.stringContaining('on their way to other: repeat') as string })
  await move(source, target)
  expect((await seen(target)).mail).toEqual(mail)
})

test('a message whose content is damaged stays in the queue corrupt; the queue is then not retired', async () => {
  const [source, target] = [place(inMemory('one')), place(inMemory('other'))]
  await fill(source)
  const [damaged = 0] = await idsIn(source)
  const broken = (method: string, [content]: readonly unknown[]) =>
    method === 'readChunk' && content === damaged ? new ContentUnreadable('part 0 of content 1 is damaged') : null
  const summary = await move(source, target, { broken })
  expect(summary?.unreadable).toHaveLength(1)
  expect(await idsIn(source)).toEqual([damaged])
  await expect(move(source, target, { isFinal: true, broken })).rejects.toMatchObject({ exitCode: 65 })
})
