/** Schedules of a real daemon: backups under load, a mistake at the start and at a reload, the commands. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { restoreQueue } from '../../src/store/sqlite/file/restore.ts'
import { openStoreReadOnly } from '../../src/store/sqlite/open-store.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { until } from '../support/node-cluster.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { SmtpLoad } from '../support/smtp-load.ts'
import { DaemonFolder, type Ended } from '../support/started-daemon.ts'

let folder: DaemonFolder
beforeEach(() => {
  folder = new DaemonFolder()
})
afterEach(() => folder.close())

interface Site {
  readonly config: string
  readonly queue: string
  readonly load: SmtpLoad
  says(...command: readonly string[]): Promise<Ended>
}

/** A configuration whose mail waits, with tables. */
async function siteWith(tables: string): Promise<Site> {
  const [config, queue, load] = [join(folder.path, 'deferd.toml'), join(folder.path, 'queue'), new SmtpLoad(1)]
  load.port = await portBelowEphemeral()
  const parameters = [`queue_directory = "${queue}"`, `smtpd_listen = "127.0.0.1:${load.port}"`, 'relayhost = "[127.0.0.1]:9"']
  writeFileSync(config, `${parameters.join('\n')}\n${tables}`)
  return { config, queue, load, says: (...command) => folder.run([...command, '--config', config], {}, { isConfigured: true }).ended }
}

const start = async ({ config }: Site) => {
  const daemon = folder.run(['start', '--config', config], {}, { isConfigured: true })
  await daemon.prints('queue directory')
  return daemon
}

/** Queue ids in a queue. */
async function idsIn(directory: string): Promise<ReadonlySet<number>> {
  const queue = openStoreReadOnly(directory)
  try {
    return new Set((await queue.reader.list(ANY_MESSAGE, { after: 0, limit: 100_000 })).map(({ message }) => message.id))
  } finally {
    await queue.close()
  }
}

test(
  'backups under load: each has all mail that was acknowledged before it began, and only so many are kept',
  { timeout: 300_000 },
  async () => {
    const backups = join(folder.path, 'backups')
    mkdirSync(backups)
    writeFileSync(join(backups, 'queue-2020-01-01-000000.db'), 'of somebody else')
    const site = await siteWith(
      `[schedule.often]\nat = "*/2 * * * * *"\ndo = "backup"\nto = "${backups}/queue-{date}-{time}.db"\nkeep = 3\n`,
    )
    const daemon = await start(site)
    site.load.start(4, (number) => `user${number}@far.example`)
    const runs = async () => {
      const { out } = await site.says('schedule', 'show', 'often', '--json')
      return (
        JSON.parse(out) as {
          readonly runs: readonly { readonly result: string; readonly begin_time: number; readonly file: string | null }[]
        }
      ).runs
    }
    await until('five backups', 200_000, async () => (await runs()).filter(({ result }) => result === 'done').length >= 5)
    // An order, between the times.
    const before = await idsIn(site.queue)
    // 65 while a run of the calendar goes on.
    let ordered = await site.says('schedule', 'run', 'often')
    while (ordered.code === 65) ordered = await site.says('schedule', 'run', 'often')
    expect(ordered).toMatchObject({ code: 0, out: expect.stringMatching(/^often: .* copied to /) })
    site.load.pace = null
    daemon.child.kill('SIGTERM')
    expect((await daemon.ended).code).toBe(0)
    // A run of the calendar may have ended with the daemon, between its backup and the removal of the oldest.
    const files = readdirSync(backups)
      .filter((name) => !name.includes('.partial-'))
      .toSorted()
    expect(files.length).toBeLessThanOrEqual(5)
    expect(files[0]).toBe('queue-2020-01-01-000000.db')
    const path = / copied to (.*\.db)[;\n]/.exec(ordered.out)?.[1] ?? ''
    const restored = join(folder.path, 'restored')
    mkdirSync(restored)
    await restoreQueue(restored, path)
    const after = await idsIn(restored)
    expect([...before].filter((id) => !after.has(id))).toEqual([])
    expect(before.size).toBeGreaterThan(50)
    expect(site.load.acknowledged.size).toBeGreaterThanOrEqual(before.size)
  },
)

test(
  'a mistake is refused at the start with 78, all of them, and a reload with one keeps the tables in effect',
  { timeout: 240_000 },
  async () => {
    const wrong = await siteWith('[schedule.a]\nat = "61 * * * *"\ndo = "backup"\nkeep = 0\n')
    const refused = await folder.run(['start', '--config', wrong.config], {}, { isConfigured: true }).ended
    expect(refused.code).toBe(78)
    for (const text of ['"61" is no minute; write 0 to 59', 'to is missing', 'keep: expected a whole number of at least 1'])
      expect(refused.err).toContain(text)
    const site = await siteWith('[schedule.flush-all]\nat = "* * * * * *"\ndo = "flush"\ndestinations = "*"\n')
    const daemon = await start(site)
    await daemon.prints('schedule flush-all (flush): 0 messages flushed')
    writeFileSync(site.config, '[schedule.flush-all]\nat = "* * * * * * *"\n')
    daemon.child.kill('SIGHUP')
    await daemon.prints('has 7 fields; write 5 fields')
    expect(await site.says('schedule', 'run', 'flush-all')).toMatchObject({ code: 78 })
    const lines = daemon.err.split('\n').length
    await until('runs go on', 60_000, () => daemon.err.split('\n').slice(lines).join('').includes('schedule flush-all'))
  },
)

test('the commands: a queue that is not there yet, an unknown table, no daemon', { timeout: 240_000 }, async () => {
  const site = await siteWith('[schedule.nightly]\nat = "30 2 * * *"\nzone = "Asia/Tokyo"\ndo = "flush"\ndestinations = "*.example"\n')
  const [listed] = (await site.says('schedule', 'list', '--json')).out.split('\n')
  expect(JSON.parse(listed ?? '')).toMatchObject({ schedule: 'nightly', do: 'flush', zone: 'Asia/Tokyo', last_run: null })
  expect(await site.says('schedule', 'show', 'other')).toMatchObject({
    code: 65,
    err: expect.stringContaining('there is no table [schedule.other]'),
  })
  expect(existsSync(site.queue)).toBe(false)
  const daemon = await start(site)
  expect(await site.says('schedule', 'run', 'other')).toMatchObject({ code: 65 })
  daemon.child.kill('SIGTERM')
  await daemon.ended
  expect(await site.says('schedule', 'run', 'nightly')).toMatchObject({ code: 69, err: expect.stringContaining('no daemon runs') })
  expect((await site.says('status')).out).toMatch(/SCHEDULES +next run\nnightly +in .* flush; no run yet/)
})
