/** Runs of `deferd simulate run` with a backlog for a provider that limits messages by a token bucket of one second’s worth. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { simulate } from './simulate-command.ts'

export interface RateLimit {
  /** Name for the test. */
  readonly name: string
  readonly perSecond: number
  /** As a rule has it: a number of messages, which is also the burst, and a time. */
  readonly rate: string
}

export const RATE_LIMITS: readonly RateLimit[] = [
  { name: '5/s', perSecond: 5, rate: '5/1s' },
  { name: '1/s', perSecond: 1, rate: '1/1s' },
  { name: '100/min', perSecond: 100 / 60, rate: '1/600ms' },
  { name: '1,000/h', perSecond: 1_000 / 3_600, rate: '1/3600ms' },
]

/** Stage and reply of the refusals. */
export const REFUSALS: readonly (readonly [stage: string, reply: string])[] = [
  ['mail', '421 4.7.0 slow down'],
  ['rcpt', '450 4.7.28 slow down'],
  ['rcpt', '421 4.7.28 slow down'],
]

export interface DrainedScenario {
  readonly delivered: number
  /** Time of the last delivery, as a multiple of messages ÷ rate. */
  readonly time: number
  /** Part of the attempts that was refused. */
  readonly refused: number
  readonly deaths: number
}

interface Output {
  readonly destinations: readonly { delivered: number; attempts: number; failed: number; last_delivery: number; deaths: number }[]
}

export async function drainScenario(
  { perSecond, rate }: RateLimit,
  [at, reply]: readonly [string, string],
  { messages, latency = '100ms' }: { readonly messages: number; readonly latency?: string },
): Promise<DrainedScenario> {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-rate-limit-'))
  const file = join(folder, 'scenario.toml')
  const rule = `[rule.limit]\nat = "${at}"\nrate = "${rate}"\nreply = "${reply}"\n`
  writeFileSync(file, `latency = "${latency}"\n\n[mail]\nmessages = ${messages}\nto = "provider.example"\n\n${rule}`)
  try {
    const { out } = await simulate(['run', file, '--json'])
    const [result] = (JSON.parse(out) as Output).destinations
    if (result === undefined) throw new Error(`no destination in ${out}`)
    const { delivered, attempts, failed, last_delivery: last, deaths } = result
    return { delivered, time: last / (messages / perSecond), refused: failed / attempts, deaths }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
