/** Nodes of a queue in PostgreSQL: joining, and the takeover of one that has failed. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import type { Connection } from '../../../src/store/postgres/session/database-connection.ts'
import { migrate } from '../../../src/store/postgres/migrations.ts'
import { joinNode, takeOverNode } from '../../../src/store/postgres/node.ts'
import * as sql from '../../../src/store/postgres/session/node-queries.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

const LABELS = { name: 'n1', program: '1.2.0', settings: 'abc', hostname: '', draining: false }

describe.skipIf(WITHOUT_POSTGRES.skip)(`nodes${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()
  let url: DatabaseUrl
  let [one, other]: Connection[] = []

  beforeEach(async () => {
    url = await emptyQueue()
    ;[one, other] = [await connectTo(url), await connectTo(url)]
  })
  afterEach(() => Promise.all([one?.end(), other?.end()]))

  const sessions = (): [Connection, Connection] => {
    if (one === undefined || other === undefined) throw new Error('no session is open')
    return [one, other]
  }

  test('the tables are created once', async () => {
    expect(await migrate(sessions()[0])).toEqual({ created: false })
  })

  test('each node has another number, also after it left', async () => {
    const [session] = sessions()
    const first = await joinNode(session, LABELS)
    await session.query(sql.removeNode, [first, 0])
    expect(await joinNode(session, LABELS)).toBeGreaterThan(first)
  })

  test('shards are taken by one node, and are free after its takeover', async () => {
    const [session] = sessions()
    const [a, b] = [await joinNode(session, LABELS), await joinNode(session, LABELS)]
    expect(await session.query(sql.takeShards, [a, 200])).toHaveLength(200)
    expect(await session.query(sql.takeShards, [b, 200])).toHaveLength(56)
    expect(await takeOverNode(session, a, 1)).toBeNull()
    expect(await takeOverNode(session, a, 0)).toEqual({ shards: 200, leases: 0, corrupt: [], swept: 0 })
    expect(await takeOverNode(session, a, 0)).toBeNull()
    expect(await session.query(sql.takeShards, [b, 256])).toHaveLength(200)
  })

  test.each([
    { of: 'a call', fence: sql.fence },
    { of: 'a batch', fence: sql.fenceWithKeys },
  ])('a takeover waits for the open transaction of $of of the node, and no later one commits', async ({ fence }) => {
    const [session, zombie] = sessions()
    const node = await joinNode(session, LABELS)
    const [{ keys } = { keys: -1 }] = await session.query<{ keys: number }>(sql.keysOf, [node])
    const parameters = [node, 1, ...(fence === sql.fence ? [] : [keys])]
    await zombie.command('begin')
    await zombie.query(fence, parameters)
    let isOver = false
    const takeover = takeOverNode(session, node, 0).then((done) => ((isOver = true), done))
    await zombie.query('insert into staged (content_id, node) values (7, $1)', [node])
    const waits = async () => isOver || (await zombie.query('select 1 from pg_locks where not granted')).length > 0
    await expect.poll(waits, { interval: 10 }).toBe(true)
    expect(isOver).toBe(false)
    await zombie.command('commit')
    expect(await takeover).toMatchObject({ shards: 0, swept: 1 })
    await expect(zombie.query(fence, parameters)).rejects.toMatchObject({ code: '22012' })
  })

  test('a transaction of a former session fails', async () => {
    const [session] = sessions()
    const node = await joinNode(session, LABELS)
    expect(await session.query(sql.nextSession, [node])).toEqual([{ session: 2 }])
    await expect(session.query(sql.fence, [node, 1])).rejects.toMatchObject({ code: '22012' })
    await session.query(sql.fence, [node, 2])
  })
})
