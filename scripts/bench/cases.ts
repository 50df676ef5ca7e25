/**
 * The loads that are measured, as data. A case sends its share of the message count, so that big mail and slow relays do not take
 * the whole time.
 */

/**
 * The end of the messages. `deferred` and `deferred once`: the sink answers 450 to each attempt, or to the first one; `half bounced`: it
 * answers 550 to every second message, whose sender gets a notice; `held`: the relay keeps them.
 */
export type Fate = 'delivered' | 'deferred' | 'deferred once' | 'half bounced' | 'held'

export interface Load {
  /** Size of the content, in bytes. */
  readonly bytes: number
  readonly recipients: number
  /** `kept` when a client keeps its connection for many messages, `new` when it opens one for each. */
  readonly connections: 'kept' | 'new'
  /** Clients at once. */
  readonly sessions: number
  readonly fate: Fate
  /** The client program; with `smtp-source` the sink is smtp-sink. Both come with Postfix, and measure no latencies. */
  readonly client: 'own' | 'smtp-source'
  /** Messages per second of all clients; null for as many as the relay takes. */
  readonly rate: number | null
}

/**
 * Settings of a relay: those of a new installation, retries after ten hours, all mail on hold, an HTTP port with metrics, a larger
 * `message_size_limit`, or those of a new installation with smtp-sink as the next hop. Each has an instance of its own.
 */
export type SetUp = 'usual' | 'deferring' | 'holding' | 'metered' | 'large' | 'smtp-sink'

export interface Case extends Load {
  readonly name: string
  /**
   * `mail` through a running relay, or through one that has just been started; `drain`: deferred mail when the sink takes it again;
   * `store`: the life of messages in the store, without SMTP.
   */
  readonly kind: 'mail' | 'cold start' | 'drain' | 'store'
  readonly setUp: SetUp
  /** Part of the message count, 1 for all of it. A drain has a count of its own. */
  readonly share: number
  /** Part of these messages that a relay gets which takes several times the CPU time. */
  readonly slowShare: number
  /** The most rounds: a long case has fewer. */
  readonly rounds: number
  /** Part of --quick too. */
  readonly quick: boolean
}

const SMALL: Omit<Case, 'name'> = {
  kind: 'mail',
  setUp: 'usual',
  bytes: 2_048,
  recipients: 1,
  connections: 'kept',
  sessions: 20,
  fate: 'delivered',
  client: 'own',
  rate: null,
  share: 1,
  slowShare: 1 / 4,
  rounds: 99,
  quick: false,
}

const FROM_SMTP_SOURCE = { client: 'smtp-source', setUp: 'smtp-sink' } as const

/** 2 kB over kept connections, which other measurements use too. */
export const KEPT: Case = { ...SMALL, name: 'kept', quick: true }

export const CASES: readonly Case[] = [
  KEPT,
  { ...SMALL, name: 'new', connections: 'new', quick: true },
  { ...SMALL, name: 'kept-1', sessions: 1, share: 1 / 4 },
  { ...SMALL, name: 'new-1', connections: 'new', sessions: 1, share: 1 / 4 },
  { ...SMALL, name: 'kept-100', sessions: 100 },
  { ...SMALL, name: 'new-100', connections: 'new', sessions: 100, share: 1 / 2 },
  { ...SMALL, ...FROM_SMTP_SOURCE, name: 'smtp-source-kept' },
  { ...SMALL, ...FROM_SMTP_SOURCE, name: 'smtp-source-new', connections: 'new' },
  { ...SMALL, ...FROM_SMTP_SOURCE, name: 'smtp-source-kept-100', sessions: 100 },
  { ...SMALL, name: '100-kB', bytes: 100_000, share: 1 / 4 },
  { ...SMALL, name: '5-MB', bytes: 5_000_000, sessions: 5, share: 1 / 100 },
  { ...SMALL, name: '20-MB', setUp: 'large', bytes: 20_000_000, sessions: 5, share: 1 / 200, slowShare: 1 / 2 },
  { ...SMALL, name: '50-recipients', recipients: 50, share: 1 / 10 },
  { ...SMALL, name: 'paced', setUp: 'metered', rate: 200, share: 1 / 4, slowShare: 1 },
  { ...SMALL, name: 'accepted', setUp: 'holding', fate: 'held' },
  { ...SMALL, name: 'deferred', setUp: 'deferring', fate: 'deferred' },
  { ...SMALL, name: 'bounced', fate: 'half bounced' },
  { ...SMALL, name: 'drain', kind: 'drain', setUp: 'deferring', fate: 'deferred once', slowShare: 1 / 50, rounds: 5 },
  { ...SMALL, name: 'cold-start', kind: 'cold start', share: 5 / 4 },
  { ...SMALL, name: 'store', kind: 'store', share: 5 },
]

/** Numbers of messages of a run. */
export interface Counts {
  /** In a turn of a case with share 1. */
  readonly messages: number
  /** In a drain. */
  readonly drained: number
}

export function messagesOf({ kind, share, slowShare }: Case, { messages, drained }: Counts, isSlow: boolean): number {
  const all = kind === 'drain' ? drained : messages * share
  return Math.max(1, Math.round(isSlow ? all * slowShare : all))
}

export function describeCase(load: Case): string {
  const { bytes, recipients, sessions, connections } = load
  const size = bytes >= 1_000_000 ? `${bytes / 1_000_000} MB` : `${Math.floor(bytes / 1_000)} kB`
  const clients = sessions === 1 ? '1 client' : `${sessions} clients`
  if (load.kind === 'drain') return `${size}, deferred mail after the host has recovered`
  if (load.kind === 'store') return `${size}, queued and delivered in the store by ${sessions} callers, without SMTP`
  return `${size}, ${recipients} recipient${recipients === 1 ? '' : 's'}, ${clients}, ${connections} connections${specialty(load)}`
}

function specialty({ kind, fate, rate }: Case): string {
  if (kind === 'cold start') return ', just started'
  if (rate !== null) return `, ${rate} a second`
  return fate === 'delivered' ? '' : `, ${fate}`
}
