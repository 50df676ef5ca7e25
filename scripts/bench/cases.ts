/**
 * The loads that are measured, as data. A case sends its share of the message count, so that big mail does not take
 * the whole time.
 */
export interface Case {
  readonly name: string
  /** Size of the content, in bytes. */
  readonly bytes: number
  readonly recipients: number
  /** `kept` when a client keeps its connection for many messages, `new` when it opens one for each. */
  readonly connections: 'kept' | 'new'
  /** Clients at once. */
  readonly sessions: number
  /** Part of the message count, 1 for all of it. */
  readonly share: number
  /** Part of --quick too. */
  readonly quick: boolean
}

const SMALL = { bytes: 2_048, recipients: 1, sessions: 20 }

export const CASES: readonly Case[] = [
  { ...SMALL, name: 'kept', connections: 'kept', share: 1, quick: true },
  { ...SMALL, name: 'new', connections: 'new', share: 1, quick: true },
  { ...SMALL, name: '100 kB', bytes: 100_000, connections: 'kept', share: 1 / 4, quick: false },
  { ...SMALL, name: '5 MB', bytes: 5_000_000, connections: 'kept', sessions: 5, share: 1 / 100, quick: false },
  { ...SMALL, name: '50 recipients', recipients: 50, connections: 'kept', share: 1 / 10, quick: false },
]

export const messagesOf = ({ share }: Case, messages: number): number => Math.max(1, Math.round(messages * share))

export function describeCase(load: Case): string {
  const { bytes, recipients, sessions, connections } = load
  const size = bytes >= 1_000_000 ? `${bytes / 1_000_000} MB` : `${Math.floor(bytes / 1_000)} kB`
  return `${size}, ${recipients} recipient${recipients === 1 ? '' : 's'}, ${sessions} clients, ${connections} connections`
}
