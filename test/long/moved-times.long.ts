/** A move of the queue of a running daemon keeps all times, as a command shows them before and after. */
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { WITHOUT_POSTGRES } from '../support/postgres-queue.ts'
import { DaemonFolder } from '../support/started-daemon.ts'

/** So few that their failures do not make the destination dead. */
const MESSAGES = 4
const RUNS = 5

let server: PostgresServer
beforeAll(async () => {
  if (!WITHOUT_POSTGRES.skip) server = await startPostgres()
}, 60_000)
afterAll(() => server?.remove())

type Settings = Readonly<Record<string, string>>

/** Accepts nothing, so that all mail waits for an hour after its first attempt. */
const COMMON: Settings = {
  relayhost: '[127.0.0.1]:1',
  minimal_backoff_time: '1h',
  maximal_backoff_time: '2h',
  queue_database_durability: 'primary',
}

interface Listed {
  readonly arrival_time: number
  readonly recipients: readonly { readonly address: string; readonly next_attempt_time: number | null; readonly attempts: number }[]
}

/** Arrival and due time of each recipient. */
async function times(folder: DaemonFolder, settings: Settings): Promise<ReadonlyMap<string, readonly (number | null)[]>> {
  const { out } = await folder.run(['queue', 'list', '--json'], settings).ended
  const messages = out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Listed)
  const tried = messages.flatMap(({ arrival_time, recipients }) =>
    recipients
      .filter(({ attempts }) => attempts > 0)
      .map(({ address, next_attempt_time }) => [address, [arrival_time, next_attempt_time]] as const),
  )
  return new Map(tried.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

async function deferredMail(folder: DaemonFolder, settings: Settings, port: number): Promise<void> {
  const mailer = createTransport({ port, host: '127.0.0.1', ignoreTLS: true })
  for (let n = 0; n < MESSAGES; n++) await mailer.sendMail({ from: 'app@us.example', to: `to-${n}@far.example`, text: `${n}` })
  await expect.poll(async () => (await times(folder, settings)).size, { timeout: 30_000 }).toBe(MESSAGES)
}

const started = async (folder: DaemonFolder, settings: Settings) => {
  const daemon = folder.run(['start'], settings)
  await daemon.prints('listens on')
  return { daemon, port: Number(/listens on .*:(\d+)/.exec(daemon.out)?.[1]) }
}

describe.skipIf(WITHOUT_POSTGRES.skip)(`a move with PostgreSQL${WITHOUT_POSTGRES.why}`, { timeout: 300_000 }, () => {
  const runs = Array.from({ length: RUNS }, (_, run) => [
    { run, from: 'database', to: 'directory' } as const,
    { run, from: 'directory', to: 'database' } as const,
  ]).flat()
  test.each(runs)('run $run from a $from to a $to', async ({ run, from, to }) => {
    const folder = new DaemonFolder()
    const url = await server.createDatabase(`moved_${run}_${from}`)
    const places: Record<typeof from, Settings> = {
      database: { ...COMMON, queue_directory: `${folder.path}/one`, queue_database: url },
      directory: { ...COMMON, queue_directory: `${folder.path}/other` },
    }
    const [source, target] = [places[from], places[to]]
    try {
      const first = await started(folder, source)
      await deferredMail(folder, source, first.port)
      const before = await times(folder, source)
      const name = to === 'database' ? url : places.directory['queue_directory']
      const moved = await folder.run(['queue', 'move', '--to', `${name}`, '--final'], source).ended
      expect(moved).toMatchObject({ code: 0 })
      expect(await times(folder, target)).toEqual(before)
      first.daemon.child.kill('SIGTERM')
      await first.daemon.ended
      await started(folder, target)
      expect(await times(folder, target)).toEqual(before)
    } finally {
      await folder.close()
    }
  })
})
