/**
 * Stored queues of each release, opened by the program of now: all that the release listed is there, waiting mail is delivered once, and the older
 * program refuses the queue after a newer one has opened it, and delivers it from a backup of before.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { releases } from '../../scripts/release/frozen-migrations.ts'
import { nextRelease } from '../support/nodes/next-release.ts'
import { connectTo, urlOf, usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'
import { ReleasedQueue, storedFile, storedListings, type ListedMessage, type StoredListings } from '../support/released-queue.ts'

const MINUTES = 60_000
const RELEASES = releases()

const opened = async (engine: Readonly<Record<string, string>> = {}): Promise<ReleasedQueue> => {
  const queue = await ReleasedQueue.open(engine)
  onTestFinished(() => queue.close())
  return queue
}

/** Facts of messages that neither a delivery nor the time changes. */
const facts = (listed: readonly object[]) =>
  (listed as readonly ListedMessage[])
    .map(({ queue_id, sender, message_size, arrival_time, recipients }) => ({
      queue_id,
      sender,
      message_size,
      arrival_time,
      recipients: recipients.map(({ address }) => address).toSorted(),
    }))
    .toSorted((a, b) => (a.queue_id < b.queue_id ? -1 : 1))

/** Listings of which each entry stays as it is, by their names in the stored ones. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  history: ['history', 'list'],
  webhooks: ['webhook', 'list'],
  tokens: ['token', 'list'],
  access: ['access', 'list'],
  suppressions: ['suppression', 'list'],
}

async function hasAllOf(queue: ReleasedQueue, stored: StoredListings): Promise<void> {
  expect(stored.queue.length).toBeGreaterThan(5)
  expect(facts(await queue.list('queue', 'list'))).toEqual(facts(stored.queue))
  expect(facts(await queue.list('queue', 'list', '--queue', 'trash'))).toEqual(facts(stored.trash))
  for (const [name, args] of Object.entries(KEPT)) {
    expect(stored[name]?.length, name).toBeGreaterThan(0)
    // Later versions may list more members.
    expect(await queue.list(...args), name).toMatchObject([...(stored[name] ?? [])])
  }
}

/** Operations after which all mail is due. */
const OPERATIONS = [
  ['restore', '--all'],
  ['release', '--all'],
  ['release', '--queue', 'scheduled'],
  ['flush', '--all'],
] as const

/** Delivers mail in all states, also that on hold and in the trash. */
async function delivers(queue: ReleasedQueue, { queue: waiting, trash }: StoredListings): Promise<void> {
  const daemon = await queue.start()
  for (const [operation = '', ...which] of OPERATIONS) {
    const { code, err } = await queue.run('queue', operation, ...which, '--yes')
    expect([code, err], operation).toEqual([0, ''])
  }
  await expect.poll(() => queue.list('queue', 'list'), { timeout: 5 * MINUTES, interval: 500 }).toEqual([])
  const recipients = [...waiting, ...trash].flatMap((message) => message.recipients.map(({ address }) => address))
  expect(queue.received.toSorted()).toEqual(recipients.toSorted())
  daemon.child.kill('SIGTERM')
  expect((await daemon.ended).code).toBe(0)
}

describe.each(RELEASES)('a queue of %s in a folder', (version) => {
  const stored = storedListings(version, 'sqlite')

  test('is opened with all it had, its mail is delivered, and it is sound', { timeout: 10 * MINUTES }, async () => {
    const queue = await opened()
    queue.placeFile(storedFile(version, 'queue.db.gz'))
    await hasAllOf(queue, stored)
    await delivers(queue, stored)
    expect(await queue.run('check', '--full')).toMatchObject({ code: 0 })
  })

  test('is refused after a next release has opened it, and a backup of before is delivered', { timeout: 10 * MINUTES }, async () => {
    const next = nextRelease()
    onTestFinished(() => next.remove())
    const queue = await opened()
    queue.placeFile(storedFile(version, 'queue.db.gz'))
    const newer = await queue.start(next.program)
    newer.child.kill('SIGTERM')
    expect((await newer.ended).code).toBe(0)
    const { code, err } = await queue.run('start')
    expect([code, err]).toEqual([
      78,
      expect.stringContaining(`use deferd ${next.version}, which wrote it, or a newer one, or restore a backup`),
    ])
    queue.received.length = 0
    queue.placeFile(storedFile(version, 'queue.db.gz'))
    await delivers(queue, stored)
  })
})

describe.skipIf(WITHOUT_POSTGRES.skip)(`in PostgreSQL${WITHOUT_POSTGRES.why}`, () => {
  const { server } = usePostgres()

  test.each(RELEASES)('a queue of %s is opened with all it had, and its mail is delivered', { timeout: 10 * MINUTES }, async (version) => {
    const url = await server().createDatabase('delivered')
    const direct = await connectTo(urlOf(url))
    await direct.command(storedFile(version, 'pg.sql.gz').toString())
    await direct.end()
    const queue = await opened({ queue_database: url, queue_database_durability: 'primary', node_name: 'n1', node_lease: '5s' })
    const stored = storedListings(version, 'postgres')
    await hasAllOf(queue, stored)
    await delivers(queue, stored)
  })
})
