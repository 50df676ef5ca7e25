/** A daemon whose queue has much mail when a limit is set for the first time: what clients see until the mail is counted, and for how long. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { DAY } from '../../src/system/clock.ts'
import { until } from './node-cluster.ts'
import { portBelowEphemeral } from './ports.ts'
import { SmtpLoad } from './smtp-load.ts'
import { DaemonFolder } from './started-daemon.ts'

/** Times in ms. */
export interface Counted {
  /** From the start of the process to the first 250. */
  readonly firstAccept: number
  /** From the first 250 to the first refusal. */
  readonly untilCounted: number
  readonly acceptedMeanwhile: number
  readonly refusals: readonly string[]
}

async function fill(directory: string, messages: number): Promise<void> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const { store } = await openInlineStore({ directory })
  await store.close()
  const db = new Database(join(directory, 'queue.db'))
  const now = Date.now()
  db.exec(`
    begin;
    create temp table numbers as with recursive n (id) as (select 1 union all select id + 1 from n where id < ${messages}) select id from n;
    insert into message (id, created_at, arrived_at, sender, size, content_id, smtputf8, envelope_crc)
      select id, ${now}, ${now}, 'app' || (id % 100) || '@us.example', 1000, id, 0, 0 from numbers;
    insert into recipient (id, state, destination, address, due_at, expires_at, envelope_crc)
      select id * 131072, 'waiting', 'd' || (id % 1000) || '.example', 'ann@far.example', ${now + DAY}, ${now + 2 * DAY}, 0 from numbers;
    insert into meta (name, value) values ('last_id', ${messages}) on conflict (name) do update set value = excluded.value;
    commit`)
  db.close()
}

/** Sets a limit that the mail of the queue exceeds. */
export async function countedAtStart(messages: number): Promise<Counted> {
  const folder = new DaemonFolder()
  const load = new SmtpLoad()
  try {
    await fill(join(folder.path, 'queue'), messages)
    const port = await portBelowEphemeral()
    const began = performance.now()
    let first = 0
    load.onAcknowledged = () => (first ||= performance.now())
    load.port = port
    load.start(1, () => 'ann@far.example')
    folder.run(['start'], { smtpd_listen: `127.0.0.1:${port}`, queue_message_limit: String(messages / 2) })
    await until('refused', 300_000, () => load.refusals.length > 0)
    const counted = performance.now()
    load.port = null
    return {
      firstAccept: first - began,
      untilCounted: counted - first,
      acceptedMeanwhile: load.acknowledged.size,
      refusals: [...load.refusals],
    }
  } finally {
    await load.close()
    await folder.close()
  }
}
