/**
 * SIGKILL in the middle of a bulk delete, by a command and over HTTP: the audit log has the exact count, and an undo restores exactly the
 * deleted messages.
 */
import { expect, test } from 'vitest'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { DAY } from '../../src/system/clock.ts'
import { cutOperation } from '../support/cut-operation.ts'
import { fillBacklog } from '../support/backlog.ts'
import { KillableRelay } from '../support/killable-relay.ts'
import { Operator } from '../support/operator.ts'

const MESSAGES = 8_000

interface Shown {
  readonly id: number
  readonly state: string
  readonly changed: number
  readonly matched: number
  readonly error: string | null
}

test('a delete that SIGKILL cuts is failed with its exact count; its undo restores exactly its messages', async () => {
  const lab = new KillableRelay()
  const operator = new Operator()
  const directory = lab.queueDirectory
  const run = (...argv: readonly string[]) => operator.run(argv, { env: { DEFERD_QUEUE_DIRECTORY: directory } })
  const audit = async () => {
    const { out } = await run('audit', '--json')
    return out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Shown)
  }
  try {
    await lab.open(0)
    const { store, close } = await openStore(directory, { threads: false, create: true })
    await fillBacklog(store, { messages: MESSAGES, now: Date.now(), destinationOf: () => lab.nextHop, dueIn: () => DAY, bytes: 100 })
    await close()
    await lab.startDaemon()
    expect((await run('queue', 'delete', '--all', '--limit', '1')).out).toBe('1 message deleted\n')
    const reader = openQueueReader(directory)
    const inTrash = async () => (await reader.find({ ...ANY_MESSAGE, queue: 'trash' }, { after: 0, limit: MESSAGES })).map(({ id }) => id)
    try {
      const [apart] = await inTrash()
      // While mail is processed, a delete of so many messages takes 0.7 seconds, so that it is running at the signal.
      expect(await lab.sendOne()).toMatch(/^250 /)
      const cut = run('queue', 'delete', '--all')
      while (((await reader.records.audit.one(2))?.changed ?? 0) < 320) await new Promise((resolve) => setTimeout(resolve, 5))
      await lab.die(0)
      expect(await cut).toMatchObject({ code: 75, err: expect.stringContaining('lost connection to the daemon') as string })

      await lab.startDaemon()
      const [, operation] = await audit()
      const deleted = (await inTrash()).length - 1
      expect(deleted).toBeGreaterThanOrEqual(320)
      expect(deleted).toBeLessThan(MESSAGES - 1)
      expect(operation).toMatchObject({ id: 2, state: 'failed', changed: deleted, error: expect.stringContaining('ended') as string })
      expect((await run('operation', 'undo', '2')).out).toBe(
        `operation 2 is undone by operation 3: ${deleted.toLocaleString('en')} messages changed back\n`,
      )
      expect(await inTrash()).toEqual([apart])
      expect((await audit()).at(-1)).toMatchObject({ id: 3, state: 'done', changed: deleted, matched: deleted })
    } finally {
      await reader.close()
    }
  } finally {
    await lab.close()
    operator.leave()
  }
})

test('the same over HTTP: the operation that was cut is failed with its exact count, and its undo restores exactly its messages', async () => {
  const lab = new KillableRelay()
  try {
    await cutOperation(lab, { messages: MESSAGES, cutAt: 320 })
  } finally {
    await lab.close()
  }
})
