/** Databases that another program has changed: rights, tables, sequences and triggers, before a start and in operation. */
import { describe, expect, test } from 'vitest'
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import { migrate } from '../../../src/store/postgres/migrations.ts'
import { openPostgresReader } from '../../../src/store/postgres/open-reader.ts'
import { openPostgresStore, type PostgresQueue } from '../../../src/store/postgres/open-store.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { realClock } from '../../support/real-clock.ts'
import { queue } from '../../conformance/mail.ts'
import { connectTo, urlOf, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

describe.skipIf(WITHOUT_POSTGRES.skip)(`changed databases${WITHOUT_POSTGRES.why}`, () => {
  const { server } = usePostgres()
  let databases = 0

  /** A queue of the user deferd in a database of its own, and statements of an administrator there. */
  async function database(): Promise<{ readonly url: DatabaseUrl; readonly administrate: (sql: string) => Promise<void> }> {
    const name = `changed_${++databases}`
    if (databases === 1) await server().query('create user deferd')
    await server().query(`create database ${name} owner deferd`)
    const url = urlOf(server().url(name).replace('postgres@', 'deferd@'))
    const session = await connectTo(url)
    await migrate(session)
    await session.end()
    return { url, administrate: async (sql) => void (await server().query(sql, name)) }
  }

  const open = (url: DatabaseUrl): Promise<PostgresQueue> =>
    openPostgresStore({
      url,
      durability: 'primary',
      clock: realClock,
      labels: { name: 'n1', program: '1', settings: '', hostname: '', draining: false },
    })

  test.each([
    ['revoke all on all tables in schema public from deferd', /permission denied for table \w+ \(42501\): give the user of the database/],
    ['revoke insert on node from deferd', /permission denied for table node \(42501\)/],
    ['revoke all on sequence node_id from deferd', /permission denied for sequence node_id \(42501\)/],
    ['drop table subscription', /relation "subscription" does not exist \(42P01\): another program has changed/],
    ['alter table node drop column settings', /column "settings" .* does not exist \(42703\)/],
    ['alter sequence node_id maxvalue 7 restart 7; select nextval($$node_id$$)', /reached maximum value of sequence "node_id" .*\(2200H\)/],
    [
      'alter sequence node_id maxvalue 9223372036854775807 restart 9223372036854775800',
      /the number 9223372036854775800, which is no safe integer/,
    ],
    [
      'create function f() returns trigger language plpgsql as $$begin return null; end$$; create trigger evil before insert on message for each row execute function f()',
      /the trigger evil on the table message is not of deferd/,
    ],
    ['create rule evil as on insert to recipient do instead nothing', /the rule evil on the table recipient is not of deferd/],
    ['alter table message enable row level security; create policy evil on message using (false)', /the policy evil on the table message/],
  ])('%s: a start is refused with 78 and a sentence', async (sql, text) => {
    const { url, administrate } = await database()
    await administrate(sql)
    await expect(open(url)).rejects.toMatchObject({
      name: 'DatabaseUnusable',
      exitCode: 78,
      message: expect.stringMatching(text) as string,
    })
  })

  test('a node that cannot join for its number leaves no row behind', async () => {
    const { url, administrate } = await database()
    await administrate('alter sequence node_id maxvalue 9223372036854775807 restart 9223372036854775800')
    await expect(open(url)).rejects.toThrow('no safe integer')
    await administrate('alter sequence node_id restart 5')
    const { node, close } = await open(url)
    expect(node).toBe(5)
    await close()
  })

  test.each([
    ['revoke all on all tables in schema public from deferd', 'grant all on all tables in schema public to deferd'],
    ['revoke insert on message from deferd', 'grant insert on message to deferd'],
    ['revoke delete on chunk from deferd', 'grant delete on chunk to deferd'],
    ['alter table recipient rename to gone', 'alter table gone rename to recipient'],
    [
      'create function f() returns trigger language plpgsql as $$begin raise $t$no mail today$t$; end$$; create trigger f before insert on message execute function f()',
      'drop trigger f on message',
    ],
  ])('%s: calls in operation are refused as for a database that is away, until that is undone', async (change, undo) => {
    const { url, administrate } = await database()
    const { store, reader, close } = await open(url)
    await queue(store)
    await administrate(change)
    // A trigger fails for rows only, and a right to delete is used later.
    if (!change.includes('delete')) await expect(queue(store)).rejects.toBeInstanceOf(StoreUnavailable)
    if (!change.includes('trigger')) await expect(store.upkeep.ping()).rejects.toBeInstanceOf(StoreUnavailable)
    await administrate(undo)
    await expect.poll(() => store.upkeep.ping().then(() => 'pong', String), { timeout: 30_000 }).toBe('pong')
    await queue(store)
    expect(await reader.list(ANY_MESSAGE, { after: 0, limit: 9 })).toHaveLength(2)
    await close()
  })

  test('message ids that another program has used up refuse mail, and ids above the range are never given out', async () => {
    const { url, administrate } = await database()
    const { store, close } = await open(url)
    await expect(administrate(`select setval('message_id', 68719476736)`)).rejects.toThrow('out of bounds')
    await administrate(`select setval('message_id', 68719476735)`)
    const used = () => {
      try {
        for (;;) store.nextId()
      } catch (error) {
        return error
      }
    }
    expect(used()).toBeInstanceOf(StoreUnavailable)
    await expect.poll(() => String(used())).toMatch(/reached maximum value of sequence "message_id" .*\(2200H\)/)
    await close()
  })

  test('a command says what is missing', async () => {
    const { url, administrate } = await database()
    await administrate('revoke all on queue from deferd')
    await expect(openPostgresReader({ url, durability: 'primary' })).rejects.toMatchObject({
      exitCode: 78,
      message: expect.stringMatching(/permission denied for table queue \(42501\): give/) as string,
    })
  })
})
