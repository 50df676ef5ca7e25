/** A disk whose sync takes 10 ms beside the disk of this machine: a library that is interposed by LD_PRELOAD delays the syncs. */
import { setTimeout as pause } from 'node:timers/promises'
import { delayedSyncs, noFaultsBecause } from '../../../test/support/io-faults/io-faults.ts'
import { KEPT } from '../cases.ts'
import { startDaemon, type BenchDaemon, type Settings } from '../figures/bench-daemon.ts'
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
/** Messages per second with the slow disk, beside the fast one, at 100 sessions. */
const LEAST_RATE = 0.6
/** p99 of a greeting meanwhile, in ms. */
const MOST_GREETING = 50
const SESSIONS = [20, 100] as const
const WARM_UP = 2_000
const MESSAGES = 8_000
/** `default_destination_concurrency_limit` of the second part. */
const SLOTS_OF_HOST = 100
/** Time between two greetings, in ms. */
const BETWEEN = 20

interface Turn extends Measure {
  /** p99 of the greetings, in ms. */
  readonly greeting: number
}

/** Both daemons have the library, so that they differ in the delay only. */
async function startContestants(setting: Setting, settings: Settings): Promise<Readonly<Record<Name, BenchDaemon>>> {
  const start = (name: Name, delay: number): Promise<BenchDaemon> => startDaemon(setting, name, settings, { env: delayedSyncs(delay) })
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
  const accepted = (turns: readonly Turn[]): number[] => turns.map(({ acceptRate }) => acceptRate ?? Number.NaN)
  const greetings = (turns: readonly Turn[]): number[] => turns.map((turn) => turn.greeting)
  const ratio = (of: (turns: readonly Turn[]) => number[]): number[] => {
    const unit = of(fast)
    return of(slow).map((value, round) => value / (unit[round] ?? Number.NaN))
  }
  return [
    figure('accepted per second, fast disk', '', accepted(fast)),
    figure('accepted per second, slow disk', '', accepted(slow)),
    figure('accepted per second, slow ÷ fast', '', ratio(accepted), { least: LEAST_RATE }),
    figure('delivered per second, fast disk', '', rates(fast)),
    figure('delivered per second, slow disk', '', rates(slow)),
    figure('delivered per second, slow ÷ fast', '', ratio(rates), { least: LEAST_RATE }),
    figure('greeting p99, fast disk', 'ms', greetings(fast)),
    figure('greeting p99, slow disk', 'ms', greetings(slow), { most: MOST_GREETING }),
  ]
}

/** A part with more settings for both daemons. */
const partWith = (name: string, about: string, settings: Settings = {}): Part => ({
  name,
  about,
  measure: async (setting) => {
    const sink = await startSink(setting.folder, setting.signal)
    setting.undo.defer(() => sink.child.stop())
    const bench: Bench = { sink, folder: setting.folder, signal: setting.signal }
    const daemons = await startContestants(setting, { relayhost: `[127.0.0.1]:${sink.port}`, ...settings })
    const turns = new Map(SESSIONS.map((sessions) => [sessions, { fast: [] as Turn[], slow: [] as Turn[] }]))
    for (const disk of NAMES) for (const sessions of SESSIONS) await takeTurn(bench, daemons[disk], sessions, setting.sized(WARM_UP))
    for (let round = 0; round < setting.rounds; round++)
      for (const [sessions, taken] of turns)
        for (const disk of rotated(NAMES, round)) taken[disk].push(await takeTurn(bench, daemons[disk], sessions, setting.sized(MESSAGES)))
    return [...turns].flatMap(([sessions, taken]) => figuresOf(sessions, taken))
  },
})

const SYNCS = partWith('syncs', `2 kB over kept connections: each sync takes ${DELAY} ms longer, beside the disk as it is`)
const SLOTS = partWith('slots', `the same with ${SLOTS_OF_HOST} deliveries at once to the host`, {
  default_destination_concurrency_limit: String(SLOTS_OF_HOST),
})

export const SLOW_DISK: Subject = {
  name: 'slow-disk',
  about: `Measures mail on a disk whose sync takes ${DELAY} ms: messages per second
beside the disk of this machine, and how long greetings wait meanwhile.`,
  missing: noFaultsBecause,
  parts: [SYNCS, SLOTS],
}
