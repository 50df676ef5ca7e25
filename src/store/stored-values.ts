/**
 * Values that the stores keep as text: outcomes and delays as JSON, the NOTIFY parameter as a list. The decoding of a value that deferd
 * never writes throws Undecodable.
 */
import { NOTIFY_CONDITIONS, type Notify } from '../mail/envelope.ts'
import type { DeliveryStatus, Stage } from '../mail/smtp-reply.ts'
import type { AttemptRecord } from './recorded-outcomes.ts'

/** Error for a row with a value that deferd never writes. */
export class Undecodable extends Error {
  override readonly name = 'Undecodable'
}

/** Status shown in place of a stored outcome that cannot be decoded. */
export const UNREADABLE: DeliveryStatus = { status: '4.3.0', reason: 'the stored outcome cannot be read', stage: 'queue' }

/** NOTIFY parameter (RFC 3461) as stored text: `never` or the list of conditions. */
export const fromNotify = (notify: Notify | undefined): string | null =>
  notify === undefined ? null : notify === 'never' ? notify : notify.join(',')

export const fromStatus = (status: DeliveryStatus | null): string | null => (status === null ? null : JSON.stringify(status))

const CONDITIONS: readonly string[] = NOTIFY_CONDITIONS

export function toNotify(value: string): Notify {
  if (value === 'never') return value
  const conditions = value.split(',')
  if (!conditions.every((one): one is (typeof NOTIFY_CONDITIONS)[number] => CONDITIONS.includes(one)))
    throw new Undecodable('notify is unknown')
  return conditions
}

/** Cache of decoded outcomes. A backlog has few distinct outcomes, each of them thousands of times. */
const decoded = new Map<string, DeliveryStatus>()
const DECODED_AT_MOST = 100
/** The outcome decoded last. Neighbouring recipients mostly have the same outcome. */
let latest: { readonly json: string; readonly status: DeliveryStatus } | undefined

export function toStatus(json: string | null): DeliveryStatus | null {
  if (json === null) return null
  if (json === latest?.json) return latest.status
  let status = decoded.get(json)
  if (status === undefined) {
    status = decodedStatus(json)
    if (decoded.size >= DECODED_AT_MOST) decoded.clear()
    decoded.set(json, status)
  }
  latest = { json, status }
  return status
}

/** An outcome for display: one that cannot be decoded is replaced. */
export const readableStatus = (json: string | null): DeliveryStatus | null => lenient(() => toStatus(json), UNREADABLE)

function decodedStatus(json: string): DeliveryStatus {
  const value = parsed(json)
  if (typeof value === 'object' && value !== null && 'status' in value && 'reason' in value && 'stage' in value) {
    const { status, reason, stage } = value
    if (typeof status === 'string' && typeof reason === 'string' && typeof stage === 'string') {
      return { ...value, status, reason, stage: stage as Stage }
    }
  }
  throw new Undecodable('an outcome lacks members')
}

export function toDelays(json: string): AttemptRecord['delays'] {
  const value = parsed(json)
  if (!Array.isArray(value)) throw new Undecodable('delays is not a list')
  const [a, b, c, d] = value.map(Number)
  return [a ?? 0, b ?? 0, c ?? 0, d ?? 0]
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw new Undecodable('the row holds invalid JSON', { cause })
  }
}

/** Returns the decoded value, or `fallback` for an Undecodable one. */
export function lenient<T, F>(read: () => T, fallback: F): T | F {
  try {
    return read()
  } catch (error) {
    if (error instanceof Undecodable) return fallback
    throw error
  }
}
