/**
 * Disks whose syncs take longer, deferd beside Postfix: a library that is interposed by LD_PRELOAD delays the syncs of both, which overlap, or run one
 * after the other by a lock.
 */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { delayedSyncs, noFaultsBecause } from '../../../test/support/io-faults/io-faults.ts'
import { KEPT } from '../cases.ts'
import { output } from '../child.ts'
import { startBesidePostfix, takeTurnsBeside, type Relays, type Turns } from '../figures/beside-postfix.ts'
import { percentile, ratios, type Figure } from '../figures/figure.ts'
import type { Part, Setting, Subject } from '../figures/subject.ts'
import { measure, type Bench, type Loaded } from '../load.ts'
import { greeting } from '../paced-source.ts'
import { postfixIsMissing } from '../postfix.ts'
import { startSink } from '../sink.ts'
import type { Measure } from '../statistics.ts'

/** Times that a sync takes longer, in ms. */
const DELAYS = [0, 1, 5, 10, 20, 400] as const
type Delay = (typeof DELAYS)[number]

const SESSIONS = 100
/** p99 of a greeting, in ms. */
const MOST_GREETING = 50
/** Messages delivered per second beside the same disk without delays. */
const LEAST_OF_FAST: Partial<Record<Delay, number>> = { 10: 0.7 }
/** Messages delivered per second beside Postfix, when syncs overlap. */
const LEAST_OF_POSTFIX: Partial<Record<Delay, number>> = { 10: 3, 20: 2, 400: 1 }
/** Time between two greetings, in ms. */
const BETWEEN = 20
/** Messages of a turn. At the largest delay, the syncs bound the rate: Postfix, which makes one for each message, accepts 2.5 per second when they are serialised. */
const messagesAt = ({ delay, lock }: Disk): number => (delay === 400 ? (lock === undefined ? 2_400 : 60) : 8_000)
/** Part of these messages that Postfix gets, except at the largest delay. */
const SLOW_SHARE = 1 / 4

interface Turn extends Measure {
  /** p99 of the greetings, in ms. */
  readonly greeting: number
}

interface Disk {
  readonly delay: Delay
  /** File by which syncs run one after the other; absent when they overlap. */
  readonly lock?: string | undefined
}

async function startRelays(setting: Setting, sinkPort: number, { delay, lock }: Disk): Promise<Relays> {
  const env = delayedSyncs(delay, { lock })
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const own = (await postfixIsMissing()) === null ? await output('postconf', ['-d', '-h', 'import_environment'], '/') : ''
  const postfix = { import_environment: [own.trim(), ...variables].join(' ') }
  return startBesidePostfix(setting, { name: String(delay), sinkPort, env, postfix })
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

async function takeTurn(bench: Bench, relay: Loaded, messages: number): Promise<Turn> {
  const load = measure(bench, relay, { ...KEPT, sessions: SESSIONS }, messages)
  const greetings = await greetingsDuring(relay.port, load)
  return { ...(await load), greeting: percentile(greetings, 0.99) }
}

const rates = (turns: readonly Turn[]): readonly number[] => turns.map(({ rate }) => rate)
const accepted = (turns: readonly Turn[]): readonly number[] => turns.map(({ acceptRate }) => acceptRate ?? Number.NaN)

function figuresOf(delay: Delay, { deferd, postfix }: Turns<Turn>, fast: Turns<Turn>, overlaps: boolean): readonly Figure[] {
  const figure = (name: string, unit: string, values: readonly number[], target: Figure['target'] = null): Figure => ({
    name: `${name}, sync + ${delay} ms`,
    unit,
    target,
    values,
  })
  const least = (limit: number | undefined): Figure['target'] => (limit === undefined || !overlaps ? null : { least: limit })
  const besidePostfix = least(LEAST_OF_POSTFIX[delay])
  return [
    figure('accepted per second', '', accepted(deferd)),
    figure('delivered per second', '', rates(deferd)),
    figure('delivered per second ÷ without delay', '', ratios(rates(deferd), rates(fast.deferd)), least(LEAST_OF_FAST[delay])),
    figure('accepted per second, Postfix', '', accepted(postfix)),
    figure('delivered per second, Postfix', '', rates(postfix)),
    figure('accepted per second ÷ Postfix', '', ratios(accepted(deferd), accepted(postfix)), delay === 400 ? besidePostfix : null),
    figure('delivered per second ÷ Postfix', '', ratios(rates(deferd), rates(postfix)), besidePostfix),
    figure(
      'greeting p99',
      'ms',
      deferd.map((turn) => turn.greeting),
      { most: MOST_GREETING },
    ),
  ].filter(({ values }) => values.length > 0)
}

async function turnsAt(setting: Setting, bench: Bench, disk: Disk): Promise<Turns<Turn>> {
  const relays = await startRelays(setting, bench.sink.port, disk)
  const turns = await takeTurnsBeside(setting, relays, disk.delay === 400 ? 1 : SLOW_SHARE, (relay, part) =>
    takeTurn(bench, relay, Math.ceil(setting.sized(messagesAt(disk)) * part)),
  )
  for (const relay of Object.values(relays)) await relay.child.stop()
  return turns
}

const partWith = (name: 'overlapping' | 'serialised', about: string): Part => ({
  name,
  about: `2 kB over ${SESSIONS} kept connections to one host, each sync longer by ${DELAYS.join(', ')} ms: ${about}`,
  measure: async (setting) => {
    const sink = await startSink(setting.folder, setting.signal)
    setting.undo.defer(() => sink.child.stop())
    const bench: Bench = { sink, folder: setting.folder, signal: setting.signal }
    const lock = name === 'serialised' ? join(setting.folder, 'lock') : undefined
    if (lock !== undefined) {
      writeFileSync(lock, '')
      // Processes of Postfix have a user of their own.
      chmodSync(lock, 0o644)
    }
    const taken = new Map<Delay, Turns<Turn>>()
    for (const delay of DELAYS) taken.set(delay, await turnsAt(setting, bench, { delay, lock }))
    const fast = taken.get(0) ?? { deferd: [], postfix: [] }
    return [...taken].flatMap(([delay, turns]) => figuresOf(delay, turns, fast, lock === undefined))
  },
})

export const SLOW_DISK: Subject = {
  name: 'slow-disk',
  about: `Measures mail on disks whose syncs take longer, up to ${Math.max(...DELAYS)} ms: messages per
second beside the same disk without delays and beside Postfix, and how long
greetings wait meanwhile.`,
  missing: noFaultsBecause,
  parts: [
    partWith('overlapping', 'syncs overlap, as on network volumes and NVMe'),
    partWith('serialised', 'the disk carries them out one after the other, as a hard disk does'),
  ],
}
