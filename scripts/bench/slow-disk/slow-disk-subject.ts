/** A disk whose sync takes 10 ms beside the disk of this machine: a library that is interposed by LD_PRELOAD delays the syncs. */
import { setTimeout as pause } from 'node:timers/promises'
import { delayedSyncs, noFaultsBecause } from '../../../test/support/io-faults/io-faults.ts'
import { KEPT } from '../cases.ts'
import { startDaemon, type BenchDaemon } from '../figures/bench-daemon.ts'
import { percentile, type Figure } from '../figures/figure.ts'
import type { Part, Setting, Subject } from '../figures/subject.ts'
import { measure, type Bench } from '../load.ts'
import { greeting } from '../paced-source.ts'
import { startSink } from '../sink.ts'
import { rotated, type Measure } from '../statistics.ts'

const NAMES = ['fast', 'slow'] as const
type Name = (typeof NAMES)[number]

/** Time that each sync takes longer, in ms. */
const DELAY = 10
/** Throughput with the slow disk, beside the fast one, at 100 sessions. */
const LEAST_RATE = 0.6
/** p99 of a greeting meanwhile, in ms. */
const MOST_GREETING = 50
const SESSIONS = [20, 100] as const
const WARM_UP = 2_000
const MESSAGES = 8_000
/** Time between two greetings, in ms. */
const BETWEEN = 20

interface Turn extends Measure {
  /** p99 of the greetings, in ms. */
  readonly greeting: number
}

/** Both daemons have the library, so that they differ in the delay only. */
async function startContestants(setting: Setting, port: number): Promise<Readonly<Record<Name, BenchDaemon>>> {
  const start = (name: Name, delay: number): Promise<BenchDaemon> =>
    startDaemon(setting, name, { relayhost: `[127.0.0.1]:${port}` }, { env: delayedSyncs(delay) })
  return { fast: await start('fast', 0), slow: await start('slow', DELAY) }
}

/** Times greetings until `load` has ended. */
async function greetingsDuring(port: number, load: Promise<unknown>): Promise<readonly number[]> {
  const greetings: number[] = []
  const state = { isOver: false }
  const end = (): void => void (state.isOver = true)
  load.then(end, end)
  while (!state.isOver) {
    greetings.push(await greeting(port))
    await pause(BETWEEN)
  }
  return greetings
}

async function takeTurn(bench: Bench, daemon: BenchDaemon, sessions: number, messages: number): Promise<Turn> {
  const load = measure(bench, daemon, { ...KEPT, sessions }, messages)
  const greetings = await greetingsDuring(daemon.port, load)
  return { ...(await load), greeting: percentile(greetings, 0.99) }
}

function figuresOf(sessions: number, { fast, slow }: Readonly<Record<Name, readonly Turn[]>>): readonly Figure[] {
  const isJudged = sessions === Math.max(...SESSIONS)
  const figure = (name: string, unit: string, values: readonly number[], target: Figure['target'] = null): Figure => ({
    name: `${name}, ${sessions} sessions`,
    unit,
    target: isJudged ? target : null,
    values,
  })
  const rates = (turns: readonly Turn[]): number[] => turns.map(({ rate }) => rate)
  const greetings = (turns: readonly Turn[]): number[] => turns.map((turn) => turn.greeting)
  const ratio = slow.map(({ rate }, round) => rate / (fast[round]?.rate ?? Number.NaN))
  return [
    figure('messages per second, fast disk', '', rates(fast)),
    figure('messages per second, slow disk', '', rates(slow)),
    figure('messages per second, slow ÷ fast', '', ratio, { least: LEAST_RATE }),
    figure('greeting p99, fast disk', 'ms', greetings(fast)),
    figure('greeting p99, slow disk', 'ms', greetings(slow), { most: MOST_GREETING }),
  ]
}

const SYNCS: Part = {
  name: 'syncs',
  about: `2 kB over kept connections: each sync takes ${DELAY} ms longer, beside the disk as it is`,
  measure: async (setting) => {
    const sink = await startSink(setting.folder, setting.signal)
    setting.undo.defer(() => sink.child.stop())
    const bench: Bench = { sink, folder: setting.folder, signal: setting.signal }
    const daemons = await startContestants(setting, sink.port)
    const turns = new Map(SESSIONS.map((sessions) => [sessions, { fast: [] as Turn[], slow: [] as Turn[] }]))
    for (const name of NAMES) for (const sessions of SESSIONS) await takeTurn(bench, daemons[name], sessions, setting.sized(WARM_UP))
    for (let round = 0; round < setting.rounds; round++)
      for (const [sessions, taken] of turns)
        for (const name of rotated(NAMES, round)) taken[name].push(await takeTurn(bench, daemons[name], sessions, setting.sized(MESSAGES)))
    return [...turns].flatMap(([sessions, taken]) => figuresOf(sessions, taken))
  },
}

export const SLOW_DISK: Subject = {
  name: 'slow-disk',
  about: `Measures mail on a disk whose sync takes ${DELAY} ms: messages per second
beside the disk of this machine, and how long greetings wait meanwhile.`,
  missing: noFaultsBecause,
  parts: [SYNCS],
}
