/** New mail beside a million deferred messages: what it costs beside an empty queue, and the daemon's memory and CPU time. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { KEPT } from '../cases.ts'
import { startDaemon, type BenchDaemon } from '../figures/bench-daemon.ts'
import { percentile, type Figure } from '../figures/figure.ts'
import { copyQueue, fillQueue } from '../figures/filled-queue.ts'
import type { Part, Setting } from '../figures/subject.ts'
import { measure, type Bench } from '../load.ts'
import { resultOfLoad, startPacedLoad } from '../paced-load.ts'
import { processorSeconds, residentOf } from '../processor-time.ts'
import { startSink, type Sink } from '../sink.ts'
import { rotated, type Measure } from '../statistics.ts'

const NAMES = ['empty', 'full'] as const
type Name = (typeof NAMES)[number]
type Daemons = Readonly<Record<Name, BenchDaemon>>

/** Rate and CPU time per message beside the empty queue. */
const LEAST_RATE = 0.9
const MOST_CPU = 1.1
const WARM_UP = 4_000
const MESSAGES = 6_000
/** Messages per second, and seconds of a turn and before it, in which the memory is looked at. */
const RATE = 200
const TURN = 60
const RAMP = 5
/** MB. */
const MOST_RESIDENT = 250
/** Seconds without mail: until the daemon is at rest, and of each look. */
const REST = 20
const IDLE = 60
/** Part of a processor. */
const MOST_IDLE = 0.01

export const NEW_MAIL: Part = {
  name: 'new-mail',
  about: 'a million queued: new mail in turns with an empty queue, memory with 200 messages a second, CPU time at rest',
  measure: async (setting) => {
    const sink = await startSink(setting.folder, setting.signal)
    setting.undo.defer(() => sink.child.stop())
    const daemons = await startContestants(setting, sink)
    const idle = await idleFigure(setting, daemons.full)
    const memory = await memoryFigures(setting, daemons)
    return [...(await mailFigures(setting, sink, daemons)), ...memory, idle]
  },
}

async function startContestants(setting: Setting, sink: Sink): Promise<Daemons> {
  const queue = copyQueue(await fillQueue(setting), join(setting.folder, 'filled'))
  // Without a relayhost, the destinations of the queue are those that its mail has.
  const settings = { relayhost: '', transport_maps: `inline:{sink.test=smtp:[127.0.0.1]:${sink.port}}` }
  return {
    empty: await startDaemon(setting, 'empty', settings),
    full: await startDaemon(setting, 'full', { ...settings, queue_directory: queue }),
  }
}

/** CPU time of the daemon without mail. */
async function idleFigure({ signal, sized, rounds }: Setting, { child: { pid } }: BenchDaemon): Promise<Figure> {
  await pause(sized(REST) * 1_000, undefined, { signal })
  const values: number[] = []
  for (let round = 0; round < rounds; round++) {
    const [before, began] = [processorSeconds(pid), performance.now()]
    await pause(sized(IDLE) * 1_000, undefined, { signal })
    values.push((100 * (processorSeconds(pid) - before)) / ((performance.now() - began) / 1_000))
  }
  return { name: 'CPU of a processor at rest, a million', unit: '%', target: { most: 100 * MOST_IDLE }, values }
}

async function mailFigures(setting: Setting, sink: Sink, daemons: Daemons): Promise<readonly Figure[]> {
  const bench: Bench = { sink, folder: setting.folder, signal: setting.signal }
  for (const name of NAMES) await measure(bench, daemons[name], KEPT, setting.sized(WARM_UP))
  const turns: Record<Name, Measure[]> = { empty: [], full: [] }
  for (let round = 0; round < setting.rounds; round++)
    for (const name of rotated(NAMES, round)) turns[name].push(await measure(bench, daemons[name], KEPT, setting.sized(MESSAGES)))
  const values = (name: Name, of: 'cpu' | 'rate'): number[] => turns[name].map((turn) => turn[of])
  const ratio = (of: 'cpu' | 'rate'): number[] => turns.full.map((turn, round) => turn[of] / (turns.empty[round]?.[of] ?? Number.NaN))
  return [
    { name: 'CPU per message, empty queue', unit: 'ms', target: null, values: values('empty', 'cpu') },
    { name: 'CPU per message, a million', unit: 'ms', target: null, values: values('full', 'cpu') },
    { name: 'CPU per message, a million ÷ empty', unit: '', target: { most: MOST_CPU }, values: ratio('cpu') },
    { name: 'messages per second, empty queue', unit: '', target: null, values: values('empty', 'rate') },
    { name: 'messages per second, a million', unit: '', target: null, values: values('full', 'rate') },
    { name: 'messages per second, a million ÷ empty', unit: '', target: { least: LEAST_RATE }, values: ratio('rate') },
  ]
}

async function memoryFigures(setting: Setting, daemons: Daemons): Promise<readonly Figure[]> {
  const memory: Record<Name, number[]> = { empty: [], full: [] }
  for (let round = 0; round < setting.rounds; round++)
    for (const name of rotated(NAMES, round)) memory[name].push(await residentUnderLoad(setting, daemons[name]))
  return [
    { name: `RSS with ${RATE} messages/s, empty queue`, unit: 'MB', target: null, values: memory.empty },
    { name: `RSS with ${RATE} messages/s, a million`, unit: 'MB', target: { most: MOST_RESIDENT }, values: memory.full },
  ]
}

/** The median of the RSS at each second of a turn, in MB. */
async function residentUnderLoad(setting: Setting, { port, child }: BenchDaemon): Promise<number> {
  const log = join(setting.folder, 'source')
  const seconds = setting.sized(TURN)
  const source = await startPacedLoad({ port, rate: RATE, seconds: RAMP + seconds }, log)
  try {
    await pause(RAMP * 1_000, undefined, { signal: setting.signal })
    const residents: number[] = []
    for (let second = 0; second < seconds; second++) {
      await pause(1_000, undefined, { signal: setting.signal })
      residents.push(residentOf(child.pid))
    }
    await resultOfLoad(source)
    return percentile(residents, 0.5)
  } finally {
    await source.stop()
    rmSync(log, { force: true })
  }
}
