/**
 * An outbound relay with tables of each kind, checks, access restrictions and logins, on SQLite and on PostgreSQL: the same mail gets
 * the same replies, and is sent with the same envelopes, headers and notices.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { queueAccess } from '../../src/cli/queue-client/queue-access.ts'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon } from '../../src/daemon/daemon.ts'
import { convertConfiguration } from '../../src/import/configuration/conversion.ts'
import { writeConfiguration } from '../../src/import/configuration/written-files.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { mainCf, MASTER_CF, TABLES, USERS, type Ports } from '../interop/migration/configuration.ts'
import { Inputs } from '../interop/migration/inputs.ts'
import { outcomesOf } from '../interop/migration/outcomes.ts'
import { Acceptance, Smarthost } from '../interop/migration/smarthosts.ts'
import { submitted } from '../interop/migration/submission.ts'
import { Operator } from '../support/operator.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'

const MAILS = 150
const FIRST = 10_000

describe.skipIf(WITHOUT_POSTGRES.skip)(`an outbound relay${WITHOUT_POSTGRES.why}`, { timeout: 120_000 }, () => {
  const { emptyQueue, server } = usePostgres()

  test('does the same on SQLite and on PostgreSQL', async () => {
    await emptyQueue()
    const acceptance = new Acceptance()
    acceptance.refused = /^(?:eve@canonical|bob@far|zoe@far)\.test$/
    const open = (name: string, isWrapped: boolean) => Smarthost.open({ name, isWrapped, users: USERS }, acceptance)
    const smarthosts = [await open('submission', false), await open('news', false), await open('smtps', true)]
    try {
      const [submission = 0, news = 0, smtps = 0] = smarthosts.map(({ port }) => port)
      const hops = { submission, news, smtps }
      const onSqlite = await observed(hops, acceptance, [])
      const database = ['queue_database=' + server().url(), 'queue_database_durability=primary', 'node_name=mx1']
      const onPostgres = await observed(hops, acceptance, database)
      expect(onPostgres).toEqual(onSqlite)
      const lines = [...onSqlite.outcomes.values()].flat()
      expect(lines.length).toBeGreaterThan(MAILS)
      for (const text of [
        'smtps wrapped:',
        'news news:',
        'submission carl:',
        'to <archive@bcc.test>',
        'to <keeper@far.test>',
        'to <boss@c.test>',
      ])
        expect(
          lines.some((line) => line.includes(text)),
          text,
        ).toBe(true)
      for (const text of ['Action: expanded', 'Action: failed', 'X-Tool: ', 'X-Inserted: 1'])
        expect(
          lines.some((line) => line.includes(text)),
          text,
        ).toBe(true)
      expect(onSqlite.held).toBeGreaterThan(5)
    } finally {
      for (const one of smarthosts) one.close()
    }
  })
})

/** Sends generated mail through a daemon, with an access entry by command, and releases mail that was held. */
async function observed(hops: Ports, acceptance: Acceptance, database: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-features-'))
  const operator = new Operator()
  const overrides = [...database, `queue_directory=${operator.directory}`, 'smtpd_listen=127.0.0.1:0', 'delay_warning_time=0']
  const loaded = configFrom(parse(converted(folder, hops)), 'host.example', { overrides })
  const daemon = await startDaemon({ loaded, events: new Events(() => systemClock.now()) })
  const access = queueAccess({ clock: operator.clock, warn: () => undefined })
  const says = async (...argv: readonly string[]): Promise<string> => {
    const { code, out, err } = await operator.run([...argv, ...overrides.flatMap((one) => ['-o', one])], { access })
    expect([code, err]).toEqual([0, ''])
    return out
  }
  const listed = async (...options: readonly string[]) => (await says('queue', 'list', '--json', ...options)).split('\n').length - 1
  try {
    await says('access', 'add', 'sender', 'zoe@', 'REDIRECT', 'keeper@far.test')
    const inputs = new Inputs(5)
    const mails = Array.from({ length: MAILS }, (_, n) => inputs.next(FIRST + n))
    const replies = await submitted(daemon.listeners[0]?.port ?? 0, mails)
    const held = () => listed('--queue', 'hold')
    await expect.poll(async () => (await listed()) - (await held())).toBe(0)
    const released = await held()
    await says('queue', 'release', '--all')
    await says('queue', 'flush', '--all')
    await expect.poll(() => listed()).toBe(0)
    const entries = (await says('access', 'list', '--json')).replaceAll(/"added_time":[\d.]+/g, '')
    return { replies, held: released, entries, outcomes: outcomesOf(acceptance.take()) }
  } finally {
    await daemon.stop()
    operator.leave()
    rmSync(folder, { recursive: true })
  }
}

/** The configuration that the import makes of the tables of Postfix. Its files are written into the folder. */
function converted(folder: string, hops: Ports): string {
  const main = Object.entries(mainCf('/c', hops)).map(([name, value]) => `${name} = ${value}\n`)
  const given = Object.entries(TABLES(folder, hops)).map(([name, text]) => [`/c/${name}`, text] as const)
  const texts = new Map([['/c/main.cf', main.join('')], ['/c/master.cf', MASTER_CF], ...given])
  const read = (path: string): string | null => texts.get(path) ?? (existsSync(path) ? readFileSync(path, 'utf8') : null)
  const facts = { configDirectory: '/c', folder, hostname: 'host.example', queueDirectory: '/nowhere' }
  writeFileSync(join(folder, 'members'), texts.get('/c/members') ?? '')
  const result = convertConfiguration(facts, {
    read,
    changedAt: () => null,
    isPrivate: () => false,
    computed: () => null,
    dump: () => null,
  })
  writeConfiguration(join(folder, 'deferd.toml'), result, { force: true, owner: null, replaces: () => false })
  return result.toml
}
