/**
 * Cost of the store: CPU and wall time per message for each step of a message's life, in groups as the daemon
 * commits them.
 *
 *   node scripts/store-bench.ts [inline|worker|postgres] [MESSAGES] [GROUP]
 *
 * `postgres` starts a server of its own and also prints its CPU time and its write-ahead log per message.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { costOf } from './bench/postgres/bench-server.ts'
import type { DeliveryStatus } from '../src/mail/smtp-reply.ts'
import { parseDatabaseUrl } from '../src/config/values/database-url.ts'
import { recipientId } from '../src/mail/message.ts'
import { openPostgresStore } from '../src/store/postgres/open-store.ts'
import { openInlineStore } from '../src/store/sqlite/clients/inline-store.ts'
import { openWorkerStore } from '../src/store/sqlite/clients/worker-store.ts'
import type { AttemptRecord, Settled } from '../src/store/recorded-outcomes.ts'
import { realClock } from '../test/support/real-clock.ts'
import { startPostgres, type PostgresServer } from '../test/support/postgres-server.ts'

const [shell = 'inline', messages = '6400', groupSize = '32'] = process.argv.slice(2)
const [count, group] = [Number(messages), Number(groupSize)]
const NOW = Date.UTC(2026, 0, 1)
const BODY = Buffer.alloc(2048, 'x')
const OK: DeliveryStatus = {
  status: '2.0.0',
  reason: '250 2.0.0 Ok: queued as 4abcDEF',
  reply: '250 2.0.0 Ok: queued as 4abcDEF',
  stage: 'end-of-data',
}
const BUSY: DeliveryStatus = {
  status: '4.2.1',
  reason: 'host mx.example[192.0.2.1] said: 450 4.2.1 busy',
  reply: '450 4.2.1 busy',
  stage: 'rcpt',
}

const directory = mkdtempSync(join(tmpdir(), 'deferd-bench-'))
const server = shell === 'postgres' ? await startPostgres() : null
const { store } = server === null ? await (shell === 'worker' ? openWorkerStore : openInlineStore)({ directory }) : await openOn(server)

async function openOn(running: PostgresServer) {
  const url = parseDatabaseUrl(running.url())
  if (url === null) throw new Error(`${running.url()} is no URL`)
  const labels = { name: 'bench', program: '', settings: '', hostname: '', draining: false }
  const queue = await openPostgresStore({ url, durability: 'primary', labels, clock: realClock })
  await running.query(`update shard set owner = ${queue.node}`)
  return queue
}

async function phase(name: string, step: (index: number) => Promise<unknown>): Promise<void> {
  const before = server === null ? null : await costOf(server)
  const [cpu, wall] = [process.cpuUsage(), performance.now()]
  for (let from = 0; from < count; from += group) await Promise.all(Array.from({ length: group }, (_, n) => step(from + n)))
  const { user, system } = process.cpuUsage(cpu)
  report(name, user + system, performance.now() - wall)
  if (server === null || before === null) return
  const after = await costOf(server)
  console.log(
    `${' '.repeat(12)} ${(((after.cpu - before.cpu) * 1e6) / count).toFixed(1).padStart(6)} µs CPU of PostgreSQL, ${((after.log - before.log) / count).toFixed(0)} B of its log`,
  )
}

const report = (name: string, cpu: number, wall: number): void =>
  console.log(`${name.padEnd(12)} ${(cpu / count).toFixed(1).padStart(6)} µs CPU ${((wall * 1000) / count).toFixed(1).padStart(6)} µs wall`)

function settle(id: number, settled: Settled, outcome: AttemptRecord['outcome'], status: DeliveryStatus) {
  const attempt = {
    recipient: recipientId(id, 0),
    at: NOW,
    relay: 'mx.example[192.0.2.1]:25',
    outcome,
    status,
    delays: [1, 2, 3, 4] as const,
  }
  return store.settle({ owner: store.leaseTerms().owner, message: id, recipients: [settled], attempts: [attempt] })
}

const delivered = (id: number, attempts: number): Promise<unknown> =>
  settle(id, { recipient: recipientId(id, 0), state: 'delivered', at: NOW, attempts, last: OK }, 'delivered', OK)

const deferred = (id: number): Promise<unknown> =>
  settle(id, { recipient: recipientId(id, 0), state: 'waiting', dueAt: NOW + 300_000, steps: 1, attempts: 1, last: BUSY }, 'deferred', BUSY)

function enqueue(ids: number[]): Promise<void> {
  const id = store.nextId()
  ids.push(id)
  const message = { id, createdAt: NOW, arrivedAt: NOW, sender: 'app@us.example', size: BODY.byteLength, contentId: id, smtputf8: false }
  const recipient = { address: `user${id}@far.example`, destination: 'far.example', dueAt: NOW, expiresAt: NOW + 172_800_000, leased: true }
  return store.enqueue({ message, recipients: [recipient], content: [BODY] })
}

async function claimAll(): Promise<void> {
  const [cpu, wall] = [process.cpuUsage(), performance.now()]
  const claim = { destination: 'far.example', now: NOW + 300_000, bands: [{ band: 0, limit: 100 }], recipientLimit: 50 }
  while ((await store.claimDue(claim)).requests.length > 0);
  const { user, system } = process.cpuUsage(cpu)
  report('claim', user + system, performance.now() - wall)
}

for (let round = 1; round <= 3; round++) {
  console.log(`round ${round}: ${count} messages of 2 kB in groups of ${group}, ${shell}`)
  const [straight, retried]: [number[], number[]] = [[], []]
  await phase('enqueue', () => enqueue(straight))
  await phase('delivered', (n) => delivered(straight[n] ?? 0, 1))
  await phase('enqueue', () => enqueue(retried))
  await phase('deferred', (n) => deferred(retried[n] ?? 0))
  await claimAll()
  await phase('delivered', (n) => delivered(retried[n] ?? 0, 2))
}
await store.close()
if (server !== null) await server.remove()
else
  console.log(
    `the queue has ${(statSync(join(directory, 'queue.db')).size / 1e6).toFixed(0)} MB, history of ${6 * count} messages included`,
  )
rmSync(directory, { recursive: true })
