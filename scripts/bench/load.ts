/**
 * Load from a client program through a relay to a counting sink, and what it costs the relay.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Load } from './cases.ts'
import { startChild, within, type Child, type Command } from './child.ts'
import { monotonic } from './clock.ts'
import { latenciesOf, readSent } from './latency.ts'
import { takeLoopDelay } from './loop-delay.ts'
import { ownProgram } from './own-program.ts'
import type { Sending } from './own-source.ts'
import { processorSeconds, residentOfTree } from './processor-time.ts'
import type { Sink } from './sink.ts'
import { smtpSource } from './smtp-source.ts'
import type { Measure } from './statistics.ts'

/** The longest time for the messages of one turn, in ms, and the addition for each of them. */
const TURN_LIMIT = 60_000
const MESSAGE_LIMIT = 5

export interface Bench {
  readonly sink: Sink
  readonly folder: string
  readonly signal: AbortSignal
}

/** A relay under load. */
export interface Loaded {
  readonly name: string
  readonly child: Pick<Child, 'pid' | 'ended' | 'hasEnded' | 'lastWords'>
  readonly port: number
  /** Port of its /metrics; null or absent without one. */
  readonly metrics?: number | null
}

/** Sends messages through a relay, waits until all have come to their end and the relay is at rest. */
export const measure = (bench: Bench, relay: Loaded, load: Load, messages: number): Promise<Measure> =>
  measureAll(bench, [relay], load, messages)

/** The same with several relays, each of which gets its part of the messages. The sum of their CPU time counts. */
export async function measureAll(bench: Bench, relays: readonly Loaded[], load: Load, messages: number): Promise<Measure> {
  const each = Math.ceil(messages / relays.length)
  const count = each * relays.length
  const goal = goalOf(bench.sink, load, count)
  const position = bench.sink.position()
  await loopDelayOf(relays)
  const before = secondsOf(relays)
  const started = monotonic()
  const sources = await Promise.all(relays.map((relay) => startSource(bench, relay, load, each)))
  try {
    const ended = await awaitGoal(bench, { relays, sources, goal, messages: count })
    // Postfix delivers a message as soon as its file is complete; its reply follows the sync, which a slow disk puts off.
    if ((await within(TURN_LIMIT, Promise.all(sources.map(({ source }) => source.ended)))) === null)
      throw new Error(`the sources have not ended ${TURN_LIMIT / 1000} s after the last delivery`)
    const loop99 = await loopDelayOf(relays)
    const began = Math.min(...sources.map(({ source }) => Number(/began=([\d.]+)/.exec(source.lastWords())?.[1] ?? started)))
    const after = await secondsAtRest(relays, bench.signal)
    const sent = load.client === 'own' ? sources.flatMap(({ times }) => readSent(times)) : []
    const lastReply = Math.max(...sent.map(({ reply }) => reply))
    // Held messages end with the reply to the last one, before the source does.
    const last = load.fate === 'held' ? lastReply : ended
    return {
      cpu: rounded(((after - before) * 1000) / count),
      rate: rounded((count * 1000) / (last - began)),
      acceptRate: sent.length === 0 ? null : rounded((count * 1000) / (lastReply - began)),
      rss: Math.round(relays.reduce((sum, { child }) => sum + residentOfTree(child.pid), 0)),
      ...latenciesOf(sent, bench.sink.arrivalsSince(position)),
      loop99,
    }
  } finally {
    for (const { source, said, times } of sources) {
      await source.stop()
      rmSync(said, { force: true })
      rmSync(times, { force: true })
    }
  }
}

interface StartedSource {
  readonly relay: Loaded
  readonly source: Child
  /** The file of its output. */
  readonly said: string
  /** The file of its messages, which smtp-source does not write. */
  readonly times: string
}

async function startSource({ folder, sink }: Bench, relay: Loaded, load: Load, messages: number): Promise<StartedSource> {
  const [said, times] = [join(folder, `source-${relay.name}`), join(folder, `sent-${relay.name}`)]
  const own = (): Command => {
    const sending: Sending = { ...load, port: relay.port, messages, first: sink.takeNumbers(messages) }
    return ownProgram('own-source.ts', JSON.stringify(sending), times)
  }
  const command = load.client === 'own' ? own() : smtpSource(load, relay.port, messages)
  return { relay, source: await startChild('the source', command, said), said, times }
}

/** The counts of the sink at which all messages have come to their end. */
type Goal = { readonly arrived: number } | { readonly refused: number } | 'sources ended'

function goalOf(sink: Sink, { fate, recipients }: Load, messages: number): Goal {
  const { arrived, refused } = sink.counts()
  switch (fate) {
    case 'delivered':
    // A notice arrives for each message that is refused.
    case 'half bounced':
      return { arrived: arrived + messages }
    case 'deferred':
    case 'deferred once':
      return { refused: refused + messages * recipients }
    case 'held':
      return 'sources ended'
  }
}

interface Awaited {
  readonly relays: readonly Loaded[]
  readonly sources: readonly StartedSource[]
  readonly goal: Goal
  readonly messages: number
}

/** Waits for the goal. Returns the time at which it was reached. Throws when it cannot be reached any more, or takes too long. */
export async function awaitGoal({ sink, signal }: Bench, { relays, sources, goal, messages }: Awaited): Promise<number> {
  const limit = TURN_LIMIT + MESSAGE_LIMIT * messages
  const deadline = monotonic() + limit
  for (;;) {
    for (const { relay, source } of sources) {
      if (source.hasEnded() && (await source.ended) !== 'exit code 0') {
        throw new Error(`sending to ${relay.name} failed: ${source.lastWords()}\n${wordsOf(relay)}`)
      }
    }
    const missing = missingTo(goal, sink, sources)
    if (missing === 0) return monotonic()
    for (const relay of relays) {
      if (relay.child.hasEnded()) throw new Error(`${relay.name} ended (${await relay.child.ended})\n${wordsOf(relay)}`)
    }
    if (sink.child.hasEnded()) throw new Error(`the sink ended (${await sink.child.ended}): ${sink.child.lastWords()}`)
    if (monotonic() > deadline) {
      const done = `${relays.map(({ name }) => name).join(', ')} was done with ${messages - missing} of ${messages} messages in ${limit / 1000} s`
      throw new Error(`${done}; give fewer with --messages\n${relays.map(wordsOf).join('\n')}`)
    }
    await pause(5, undefined, { signal })
  }
}

function missingTo(goal: Goal, sink: Sink, sources: readonly StartedSource[]): number {
  if (goal === 'sources ended') return sources.filter(({ source }) => !source.hasEnded()).length
  const { arrived, refused } = sink.counts()
  return Math.max(0, 'arrived' in goal ? goal.arrived - arrived : goal.refused - refused)
}

const wordsOf = ({ name, child }: Loaded): string => `${name} said:\n${child.lastWords()}`

const rounded = (value: number): number => Number(value.toFixed(4))

/** The worst delay of the event loops since the last call; null when no relay has /metrics. */
async function loopDelayOf(relays: readonly Loaded[]): Promise<number | null> {
  const delays = await Promise.all(relays.flatMap(({ metrics }) => (metrics == null ? [] : [takeLoopDelay(metrics)])))
  return delays.length === 0 ? null : rounded(Math.max(...delays))
}

/** CPU seconds of relays so far. */
export const secondsOf = (relays: readonly Loaded[]): number => relays.reduce((sum, { child }) => sum + processorSeconds(child.pid), 0)

/** CPU seconds of the relays when they have not changed for a fifth of a second; at most five seconds are given. */
export async function secondsAtRest(relays: readonly Loaded[], signal: AbortSignal): Promise<number> {
  let seconds = secondsOf(relays)
  for (let [unchanged, looks] = [0, 0]; unchanged < 4 && looks < 100; looks++) {
    await pause(50, undefined, { signal })
    const now = secondsOf(relays)
    unchanged = now === seconds ? unchanged + 1 : 0
    seconds = now
  }
  return seconds
}
