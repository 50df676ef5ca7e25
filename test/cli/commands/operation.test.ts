/** `deferd operation`: cancel and undo without a daemon, at a daemon, and on a queue that several nodes share. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { queueAccess } from '../../../src/cli/queue-client/queue-access.ts'
import { visitQueue } from '../../../src/store/postgres/visiting-node.ts'
import type { QueueStore } from '../../../src/store/queue-store.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { queue } from '../../conformance/mail.ts'
import { NOW, Operator, type Ran } from '../../support/operator.ts'
import { withCommandSocket } from '../../support/command-socket.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

let operator: Operator
beforeEach(() => {
  operator = new Operator()
})
afterEach(() => operator.leave())

const fill = (store: QueueStore, count: number): Promise<unknown> =>
  Promise.all(Array.from({ length: count }, () => queue(store, { at: NOW - 60_000 })))

const held = async (): Promise<number> => (await operator.says('queue', 'list', '--queue', 'hold', '--tsv')).split('\n').length - 1

describe('without a daemon', () => {
  beforeEach(() => operator.own((store) => fill(store, 3)))

  test('an undo changes exactly the messages of the operation back, and can be undone', async () => {
    await operator.says('queue', 'hold', '--all', '--limit', '1')
    await operator.says('queue', 'hold', '--all')
    expect(await operator.says('operation', 'undo', '2')).toBe('operation 2 is undone by operation 3: 2 messages changed back\n')
    expect(await held()).toBe(1)
    expect(await operator.says('audit', '--limit', '2')).toBe(
      '2026-11-20 10:00:00  operator  release undo of 2  (2 changes, id 3)\n' +
        '2026-11-20 10:00:00  operator  hold --all  (2 changes, id 2, undone by 3)\n',
    )
    expect(await operator.says('operation', 'list')).toMatch(
      /^ID TIME +STATE CHANGED UNDO +WHO +OPERATION\n 3 2026-11-20 10:00:00 done +2 in \S+ +operator release undo of 2\n 2 2026-11-20 10:00:00 done +2 by 3 +operator hold --all\n/,
    )
    expect((await operator.says('operation', 'list', '--limit', '1', '--json')).split('\n')).toHaveLength(2)
    const again = JSON.parse(await operator.says('operation', 'undo', '3', '--yes', '--reason', 'wrong id', '--json')) as object
    expect(again).toMatchObject({ id: 4, operation: 'hold', state: 'done', changed: 2, undoes: 3, reason: 'wrong id', who: 'operator' })
    expect(await held()).toBe(3)
  })

  test('a message that was placed elsewhere since is left alone', async () => {
    await operator.says('queue', 'hold', '--all')
    await operator.says('queue', 'delete', '--all', '--limit', '1')
    expect(await operator.says('operation', 'undo', '1')).toBe('operation 1 is undone by operation 3: 2 messages of 3 changed back\n')
  })

  test('an operation that is unknown, has ended or cannot be undone is refused with 65', async () => {
    await operator.says('queue', 'flush', '--all')
    const refused = (why: string) => ({ code: 65, out: '', err: `deferd: ${why}\n` })
    expect(await operator.run(['operation', 'undo', '1'])).toMatchObject(refused('operation 1 (flush) cannot be undone'))
    expect(await operator.run(['operation', 'cancel', '1'])).toMatchObject(
      refused('operation 1 has ended: it is done; changed messages: 0'),
    )
    for (const verb of ['undo', 'cancel'])
      expect(await operator.run(['operation', verb, '9'])).toMatchObject(refused('there is no operation 9: deferd audit shows the ids'))
    for (const id of ['0', 'x', '-1', '99999999999999999999']) expect((await operator.run(['operation', 'undo', '--', id])).code).toBe(64)
  })
})

describe('with a daemon', () => {
  /** Runs a story beside a daemon that calls `afterRound` after each round of an operation. */
  const besideDaemon = (afterRound: () => Promise<void>, story: () => Promise<void>): Promise<void> =>
    operator.own(async (store) => {
      await fill(store, 320)
      const { directory, clock } = operator
      await withCommandSocket({ directory, clock, store, throttle: afterRound }, story)
    })

  test('an operation of the command line is cancelled while it runs, and what it has changed is undone', async () => {
    let rounds = 0
    let cancelled: Ran | undefined
    const afterRound = async (): Promise<void> => {
      if (++rounds !== 2) return
      expect(await operator.says('audit')).toMatch(/\(128 changes, id 1, running, request [^)]+\)/)
      expect(await operator.run(['operation', 'undo', '1'])).toMatchObject({
        code: 65,
        err: 'deferd: operation 1 is not complete: cancel it, then undo it\n',
      })
      cancelled = await operator.run(['operation', 'cancel', '1'])
    }
    await besideDaemon(afterRound, async () => {
      expect(await operator.run(['queue', 'hold', '--all'])).toMatchObject({
        code: 75,
        err: 'deferd: operation 1 was cancelled by operator; changed messages: 128\n',
      })
      expect(cancelled).toMatchObject({
        code: 0,
        out: 'operation 1 is cancelled; 128 messages changed: deferd operation undo 1 changes them back\n',
      })
      expect(await operator.says('audit')).toMatch(/\(128 changes, id 1, cancelled by operator, request [^)]+\)/)
      expect(await held()).toBe(128)
      expect(await operator.says('operation', 'undo', '1')).toBe('operation 1 is undone by operation 2: 128 messages changed back\n')
      expect(await held()).toBe(0)
      expect((await operator.run(['operation', 'cancel', '1'])).err).toContain('operation 1 has ended: it is cancelled')
      expect((await operator.run(['operation', 'undo', '9'])).code).toBe(65)
    })
  })
})

describe.skipIf(WITHOUT_POSTGRES.skip)(`on a shared queue${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue, server } = usePostgres()

  const run = (...args: readonly string[]) => {
    const database = [`queue_database=${server().url()}`, 'queue_database_durability=primary', 'node_name=mx2']
    const access = queueAccess({ clock: systemClock, warn: expect.unreachable })
    return operator.run([...args, ...database.flatMap((one) => ['-o', one])], { access })
  }

  test('an operation of another node is cancelled, and undone from any machine', async () => {
    const url = await emptyQueue()
    const node = await visitQueue({ database: { url, durability: 'primary' }, name: 'mx1', lease: 10_000, machine: systemClock })
    try {
      await fill(node.store, 2)
      expect((await run('queue', 'hold', '--all')).out).toBe('2 messages put on hold\n')
      const [{ id: hold } = { id: 0 }] = await node.reader.records.audit.after({ after: 0, limit: 1 })
      expect((await run('operation', 'undo', String(hold))).out).toMatch(
        /^operation \d+ is undone by operation \d+: 2 messages changed back\n$/,
      )
      const running = await node.store.records.audit.begin({
        at: node.clock.now(),
        who: 'page:alice (127.0.0.1)',
        action: 'delete',
        arguments: '--all',
        reason: null,
        expected: 2,
        undoUntil: null,
        undoes: null,
        request: null,
      })
      expect((await run('operation', 'cancel', String(running))).out).toContain(`operation ${running} is cancelled; 0 messages changed`)
      expect(await node.reader.records.audit.one(running)).toMatchObject({
        state: 'cancelled',
        error: 'cancelled by operator',
        node: 'mx1',
      })
      const round = { operation: running, at: node.clock.now(), matched: 0 }
      expect(await node.store.operate([], round)).toBeNull()
      expect((await run('operation', 'undo', '999999')).code).toBe(65)
    } finally {
      await node.close()
    }
  })
})
