/**
 * Moves the queue of a daemon under load to another place, and interrupts the move `faults` times: by SIGKILL to the daemon, the end of
 * all sessions of the database, or a crash of its server. Completes the move, and counts what became of each message. The remote server
 * accepts nothing before that, so that no delivery is repeated by a fault.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { seededRandom } from '../../src/system/random.ts'
import { isRefused, KillableRelay } from './killable-relay.ts'
import { startPostgres, type PostgresServer } from './postgres-server.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Number of messages in the queue when the first move begins. */
const BACKLOG = 150
/** Maximum time from the begin of a move to the fault, in ms. */
const MOMENT = 250

export type QueueKind = 'directory' | 'database'
export type MoveFault = 'SIGKILL' | 'sessions ended' | 'server crashed'

export interface MoveStory {
  readonly from: QueueKind
  readonly to: QueueKind
  readonly faults: readonly MoveFault[]
  readonly seed: number
}

export interface MoveReport {
  readonly acknowledged: number
  /** Number of starts of the daemon at which messages were between the queues. */
  readonly interrupted: number
  /** Number of moves that did not end with exit code 0. */
  readonly failed: number
  readonly refusals: readonly string[]
}

/** A queue, by its name for `deferd queue move`, and the settings of its daemon. */
interface Place {
  readonly name: string
  readonly settings: Readonly<Record<string, string>>
}

/** Runs `deferd queue move` for the queue of a daemon, and resolves with its exit code and output. */
function move(
  { settings }: Place,
  to: Place,
  ...more: readonly string[]
): Promise<{ readonly code: number | null; readonly said: string }> {
  const program = join(import.meta.dirname, '../../bin/deferd.js')
  const overrides = Object.entries({ ...settings, queue_database_durability: 'primary' }).flatMap(([name, value]) => [
    '-o',
    `${name}=${value}`,
  ])
  const child = spawn(process.execPath, [program, 'queue', 'move', '--to', to.name, ...overrides, ...more], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += String(data)))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, said })))
}

/** The queues of a story, in folders and databases of their own. */
class Places {
  readonly #folders: string[] = []
  server: PostgresServer | null = null

  async open(kind: QueueKind, name: string): Promise<Place> {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-move-'))
    this.#folders.push(folder)
    if (kind === 'directory') return { name: folder, settings: { queue_directory: folder } }
    this.server ??= await startPostgres()
    const url = await this.server.createDatabase(name)
    return { name: url, settings: { queue_directory: folder, queue_database: url, queue_database_durability: 'primary', node_lease: '2s' } }
  }

  async close(): Promise<void> {
    await this.server?.remove()
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
  }
}

export async function killedWhileMoving({ from, to, faults, seed }: MoveStory): Promise<MoveReport> {
  const chance = seededRandom(seed).stream('kills')
  const places = new Places()
  const [source, target] = [await places.open(from, 'source'), await places.open(to, 'target')]
  const lab = new KillableRelay(source.settings)
  let failed = 0
  lab.far.isBusy = true
  lab.load.pace = 5
  try {
    await lab.open(4)
    await lab.startDaemon()
    await lab.acknowledges(BACKLOG)
    for (const fault of faults) {
      const begun = begunMoves(lab)
      const moving = move(source, target)
      while (begunMoves(lab) === begun) await pause(5)
      await pause(chance() * MOMENT)
      await happen(fault, lab, places.server)
      const { code } = await moving
      if (code !== 0) failed++
      if (fault === 'SIGKILL') await lab.startDaemon()
    }
    const final = await move(source, target, '--final')

    expect(final).toMatchObject({ code: 0 })
    const { refusals } = lab.load
    for (let n = 0; n < 200 && !refusals.some(isOfShutdown); n++) await pause(50)
    await lab.quiet()
    expect((await lab.terminate()).code).toBe(0)
    await lab.startDaemon()
    expect(await lab.ends(20_000)).toBe(78)
    expect(lab.log.at(-1)).toContain(`was moved to ${target.name}`)

    await delivered(lab, target)

    const interrupted = lab.log.filter((line) => line.includes('are between this queue and another')).length
    return { acknowledged: lab.acknowledged.size, interrupted, failed, refusals }
  } finally {
    await lab.close()
    await places.close()
  }
}

/** True for the reply of a daemon whose queue has moved away. */
export const isOfShutdown = (reply: string): boolean => reply.startsWith('421 4.3.2')

const begunMoves = ({ log }: KillableRelay): number => log.filter((line) => line.includes('of this queue to')).length

async function happen(fault: MoveFault, lab: KillableRelay, server: PostgresServer | null): Promise<void> {
  switch (fault) {
    case 'SIGKILL':
      await lab.die(0)
      return
    case 'sessions ended':
      await server?.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'deferd %'`)
      return
    case 'server crashed':
      await server?.stop('kill')
      await server?.start()
  }
}

/** Starts a daemon with the target, and expects that it delivers or returns each acknowledged message once. */
async function delivered(lab: KillableRelay, { settings }: Place): Promise<void> {
  const { far, acknowledged } = lab
  far.isBusy = false
  const daemon = new KillableRelay({ ...settings, relayhost: lab.nextHop })
  try {
    await daemon.startDaemon()
    expect(await daemon.drained(60_000)).toBe(true)
    expect((await daemon.terminate()).code).toBe(0)
    const corrupt = await corruptIn(daemon)
    const isMissing = (number: number) => !(isRefused(number) ? far.noticed : far.delivered).has(number) && !corrupt.has(number)
    expect([...acknowledged.keys()].filter(isMissing)).toEqual([])
  } finally {
    await daemon.close()
  }
  expect([...far.delivered].filter(([, times]) => times !== 1)).toEqual([])
  expect([...far.noticed].filter(([, ids]) => ids.size !== 1)).toEqual([])
}

/** Numbers of the messages that were in delivery at three kills. */
async function corruptIn(daemon: KillableRelay): Promise<ReadonlySet<number>> {
  const reader = await daemon.openReader()
  try {
    const listed = await reader.list({ ...ANY_MESSAGE, queue: 'corrupt' }, { after: 0, limit: 10_000 })
    return new Set(listed.flatMap(({ recipients }) => recipients.map(({ address }) => Number(/-(\d+)@/.exec(address)?.[1]))))
  } finally {
    await reader.close()
  }
}
