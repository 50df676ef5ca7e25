/** A node of a shared queue that another one takes over while it starts. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { describe, expect, onTestFinished, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import { startDaemon } from '../../../src/daemon/daemon.ts'
import { takeOverNode } from '../../../src/store/postgres/node.ts'
import type { Connection } from '../../../src/store/postgres/session/database-connection.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

describe.skipIf(WITHOUT_POSTGRES.skip)(`a node that is taken over${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue, server } = usePostgres()

  const session = async (): Promise<Connection> => {
    const connection = await connectTo(url)
    onTestFinished(() => connection.end())
    return connection
  }
  let url: DatabaseUrl

  // The start waits for the lock of the table: at its subscriptions, and at its saved destinations.
  test.each(['subscription', 'destination'])(
    'while it starts joins again, and sends the events of its subscriptions (%s)',
    async (table) => {
      url = await emptyQueue()
      const [lock, taker] = [await session(), await session()]
      const folder = mkdtempSync(join(tmpdir(), 'deferd-taken-'))
      onTestFinished(() => rmSync(folder, { recursive: true }))
      const file = join(folder, 'events.jsonl')
      const overrides = [
        `queue_database=${server().url()}`,
        'queue_database_durability=primary',
        'smtpd_listen=127.0.0.1:0',
        'relayhost=[127.0.0.1]:1',
      ]
      const places = { overrides: [...overrides, `queue_directory=${join(folder, 'queue')}`] }
      const loaded = configFrom({ events: { app: { to: `file:${file}`, types: ['message.accepted'] } } }, 'host.example', places)
      const events = new Events(() => systemClock.now())
      const joined: number[] = []
      events.listen((event) => void (event.kind === 'node-joined' && joined.push(event.node)))

      await lock.command('begin')
      await lock.command(`lock table ${table} in access exclusive mode`)
      const starting = startDaemon({ loaded, events })
      await expect
        .poll(() => taker.query(`select 1 from pg_locks where relation = '${table}'::regclass and not granted`), { interval: 5 })
        .toHaveLength(1)
      const [former] = await taker.query<{ id: number }>('select id from node')
      expect(await takeOverNode(taker, former?.id ?? 0, 0)).not.toBeNull()
      await lock.command('rollback')

      const daemon = await starting
      onTestFinished(() => daemon.stop())
      const [next] = await taker.query<{ id: number }>('select id from node')
      expect([joined.at(-1), next?.id !== former?.id]).toEqual([next?.id, true])
      // The sessions and periodic tasks of the former node end with it: none of them looks for mail of providers, which happens every 5 s.
      await sleep(6_000)
      const left = `select application_name from pg_stat_activity where application_name like 'deferd ${former?.id ?? 0} %'`
      await expect.poll(() => taker.query(left)).toEqual([])
      const port = daemon.listeners[0]?.port ?? 0
      await createTransport({ host: '127.0.0.1', port, ignoreTLS: true }).sendMail({
        from: 'app@us.example',
        to: 'ann@far.example',
        text: 'hi',
      })
      await expect.poll(() => readFileSync(file, 'utf8').split('\n').length).toBe(2)
    },
  )
})
