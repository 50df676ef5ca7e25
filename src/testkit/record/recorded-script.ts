/** The file of a recording: a script of remote servers, with a head that tells how it was made. */
import { stringify } from 'smol-toml'
import { isoInstant } from '../../mail/mail-date.ts'
import { plural } from '../../presentation/text.ts'
import { SECOND, type Duration, type WallTime } from '../../system/clock.ts'
import { formatDuration } from '../../system/duration.ts'
import { VERSION } from '../../system/version.ts'
import type { FaultStage } from '../remote/rule.ts'
import type { Observation } from './observation.ts'
import { recordedRules, type RecordedRule } from './recorded-rules.ts'

export interface Recording {
  /** Name and port of the relay. */
  readonly relay: string
  readonly startedAt: WallTime
  readonly duration: Duration
  readonly sessions: number
  readonly clients: number
  readonly observations: readonly Observation[]
}

export interface ScriptOptions {
  readonly hasTls: boolean
  readonly keepsAddresses: boolean
  readonly maxGap: Duration
}

/** Stages at which nothing is sent by default. */
const SILENT: ReadonlySet<FaultStage> = new Set(['connect', 'handshake', 'body', 'idle'])

export function recordedScript(recording: Recording, options: ScriptOptions): { readonly text: string; readonly rules: number } {
  const rules = recordedRules(recording.observations, options.maxGap)
  const duration = formatDuration(Math.round(recording.duration / SECOND) * SECOND)
  const record = stringify({ record: { sessions: recording.sessions, duration } })
  const parts = [headOf(recording, options), record.trimEnd(), ...rules.map(ruleText)]
  return { text: `${parts.join('\n\n')}\n`, rules: rules.length }
}

function headOf({ relay, startedAt, sessions, clients, observations }: Recording, { hasTls, keepsAddresses }: ScriptOptions): string {
  const usual = observations.filter(({ stage, fault }) => fault === null && !SILENT.has(stage))
  const counts = [...Map.groupBy(usual, ({ stage }) => stage)].map(([stage, all]) => `${stage} ${all.length}`)
  const lines = [
    `Recorded by deferd ${VERSION} on ${isoInstant(startedAt).slice(0, 16).replace('T', ' ')} UTC: ${plural(sessions, 'session')} of ${plural(clients, 'client')} with ${relay}.`,
    hasTls ? 'TLS ended at the proxy, on both sides.' : 'STARTTLS was removed from the replies of the relay; record with --tls to keep it.',
    'CHUNKING and BINARYMIME were removed.',
    keepsAddresses
      ? 'Addresses are those of the sessions (--keep-addresses).'
      : 'Addresses are masked: s1@d1.example is a sender, r1@d2.example a recipient. Send to those that the rules name.',
    `Default replies, apart from their text: ${counts.join(', ') || 'none'}.`,
  ]
  return lines.map((line) => `# ${line}`).join('\n')
}

function ruleText({ name, rule, occasions }: RecordedRule): string {
  const times = occasions.map(({ at }) => formatDuration(Math.round(at / SECOND) * SECOND))
  const span = times.length === 1 || times[0] === times.at(-1) ? `at ${times[0]}` : `from ${times[0]} to ${times.at(-1)}`
  const content = occasions.find((one) => one.content !== null)?.content
  const comment = `# ${plural(occasions.length, 'time')}, ${span}${content === undefined ? '' : `; ${content}`}`
  return `${comment}\n${stringify({ rule: { [name]: rule } }).trimEnd()}`
}
