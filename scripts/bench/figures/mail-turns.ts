/**
 * Daemons that differ in their configuration, measured in turns. A turn has mail as fast as possible, and greetings beside mail at a
 * constant rate.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KEPT } from '../cases.ts'
import { measure, type Bench } from '../load.ts'
import { resultOfLoad, startPacedLoad } from '../paced-load.ts'
import { startSink } from '../sink.ts'
import { rotated, type Measure } from '../statistics.ts'
import { startDaemon, type BenchDaemon } from './bench-daemon.ts'
import { percentile } from './figure.ts'
import type { Setting } from './subject.ts'

export interface MailTurn extends Measure {
  /** The 99th percentile of the times to the greeting, in ms. */
  readonly greetingP99: number
}

/** Messages before the turns, and in each of them. */
const WARM_UP = 4_000
const MESSAGES = 6_000
/** Messages per second, and seconds, while greetings are timed. */
const RATE = 200
const SECONDS = 20

/** Takes the turns. `configuration` returns the configuration file of a daemon, which is empty for none. */
export async function takeMailTurns<Name extends string>(
  setting: Setting,
  names: readonly Name[],
  configuration: (name: Name) => string | Promise<string>,
): Promise<Readonly<Record<Name, MailTurn[]>>> {
  const sink = await startSink(setting.folder, setting.signal)
  setting.undo.defer(() => sink.child.stop())
  const bench: Bench = { sink, folder: setting.folder, signal: setting.signal }
  const daemons = new Map<Name, BenchDaemon>()
  for (const name of names) {
    const file = join(setting.folder, `${name}.toml`)
    writeFileSync(file, await configuration(name))
    daemons.set(name, await startDaemon(setting, name, { relayhost: `[127.0.0.1]:${sink.port}` }, { args: ['--config', file] }))
  }
  for (const daemon of daemons.values()) await measure(bench, daemon, KEPT, setting.sized(WARM_UP))
  const turns = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, MailTurn[]>
  for (let round = 0; round < setting.rounds; round++)
    for (const [name, daemon] of rotated([...daemons], round)) {
      const loaded = await measure(bench, daemon, KEPT, setting.sized(MESSAGES))
      turns[name].push({ ...loaded, greetingP99: await greetingP99(setting, daemon) })
    }
  return turns
}

async function greetingP99(setting: Setting, daemon: BenchDaemon): Promise<number> {
  const load = { port: daemon.port, rate: RATE, seconds: setting.sized(SECONDS) }
  const source = await startPacedLoad(load, join(setting.folder, `paced-${daemon.name}`))
  try {
    return percentile((await resultOfLoad(source)).greetings, 0.99)
  } finally {
    await source.stop()
  }
}
