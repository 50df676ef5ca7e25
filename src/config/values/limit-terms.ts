/** Limits of the queue as amounts, and the clients that they do not refuse. */
import { Networks } from './networks.ts'
import type { Amount } from './values.ts'

/** The parameters of the limits. */
export interface QueueLimitConfig {
  readonly queue_message_limit: number
  readonly queue_size_limit: number
  readonly queue_share_message_limit: Amount
  readonly queue_share_size_limit: Amount
  /** In percent. */
  readonly queue_limit_resume: number
  readonly queue_limit_exceptions: readonly string[]
  readonly share_key: readonly SharePart[]
  readonly fair_share: boolean
}

/** Parts of share_key that every message may have. */
export const SHARE_PARTS = ['login', 'token', 'sender_domain', 'client'] as const
export type SharePart = (typeof SHARE_PARTS)[number] | FieldKey

/** The value of a header field as a key. */
export type FieldKey = `header:${string}`

/** True for `header:` with a printable name without a colon (RFC 5322 §2.2). */
export const isFieldKey = (given: unknown): given is FieldKey => typeof given === 'string' && /^header:[!-9;-~]{1,100}$/.test(given)

/** Lower-case name of the header field that is the key; undefined for other keys. */
export const fieldOfKey = (key: string): string | undefined => (isFieldKey(key) ? key.slice('header:'.length).toLowerCase() : undefined)

/** Measure of a limit: messages, or the bytes of whole messages. */
export type Measure = 'messages' | 'bytes'

const SHARE_LIMITS = {
  queue_share_message_limit: 'queue_message_limit',
  queue_share_size_limit: 'queue_size_limit',
} as const
type ShareLimit = keyof typeof SHARE_LIMITS

/** Limit of one share; 0 for none. */
function shareLimit(config: QueueLimitConfig, name: ShareLimit): number {
  const given = config[name]
  return typeof given === 'number' ? given : Math.floor((config[SHARE_LIMITS[name]] * given.percent) / 100)
}

/** Throws an Error that names the parameter when the limit of a share contradicts that of the queue. */
export function assertShareLimit(config: QueueLimitConfig, name: ShareLimit): void {
  const [given, total] = [config[name], SHARE_LIMITS[name]]
  if (typeof given !== 'number' && config[total] === 0)
    throw new Error(`${name}: ${given.percent}% is a part of ${total}, which is not set: set it, or write an amount`)
  if (typeof given !== 'number' && (given.percent === 0 || given.percent > 100))
    throw new Error(`${name}: ${given.percent}% is not a part of ${total}: write a percentage above 0% and at most 100%`)
  if (config[total] > 0 && shareLimit(config, name) > config[total])
    throw new Error(`${name}: ${shareLimit(config, name)} is more than ${total}, which is ${config[total]}: write less, or raise ${total}`)
  if (typeof given !== 'number' && shareLimit(config, name) === 0)
    throw new Error(`${name}: ${given.percent}% of ${total} is less than 1: write more, or raise ${total}`)
}

/** The limits of the queue and of each share; 0 for none. */
export interface QueueLimitTerms {
  readonly queue: Readonly<Record<Measure, number>>
  readonly share: Readonly<Record<Measure, number>>
  /** Part of a limit at which it is open again. */
  readonly resume: number
}

/** Null without a limit. */
export function queueLimitTerms(config: QueueLimitConfig): QueueLimitTerms | null {
  const queue = { messages: config.queue_message_limit, bytes: config.queue_size_limit }
  const share = { messages: shareLimit(config, 'queue_share_message_limit'), bytes: shareLimit(config, 'queue_share_size_limit') }
  const isAny = [queue, share].some(({ messages, bytes }) => messages > 0 || bytes > 0)
  return isAny ? { queue, share, resume: config.queue_limit_resume / 100 } : null
}

/** An entry with a digit and a dot, colon or slash before any other character is a network. */
export const isNetwork = (entry: string): boolean => /^!*(?:\[|cidr:|\/|[\d.]+(?:\/|$)|[\da-f]*:[\da-f:.]*(?:\/|$))/i.test(entry)

/** Users of AUTH, `token:NAME` and networks. */
export class Clients {
  readonly #networks: Networks
  readonly #users: ReadonlySet<string>

  /** Throws an Error that names the parameter when an entry is a network that does not exist. */
  constructor(entries: readonly string[], parameter: string) {
    this.#networks = new Networks(entries.filter(isNetwork), parameter)
    this.#users = new Set(entries.filter((entry) => !isNetwork(entry)))
  }

  has({ user, address }: { readonly user: string | undefined; readonly address: string | null }): boolean {
    return (user !== undefined && this.#users.has(user)) || (address !== null && this.#networks.has(address))
  }
}
