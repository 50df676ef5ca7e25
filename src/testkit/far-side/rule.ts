/**
 * The language in which the far side is told how to fail. A rule says where it holds (which mail, which host), when
 * (how often, at what times, under what load) and what is done at one stage of the conversation. Rules are values; the
 * same ones come from TOML, from code and from the addresses of a sink.
 */
import type { Duration } from '../../mail/clock.ts'

/** Stages at which the far side speaks, in the order of a conversation. */
export const SPOKEN_STAGES = [
  'greeting',
  'ehlo',
  'helo',
  'starttls',
  'handshake',
  'auth',
  'mail',
  'rcpt',
  'data',
  'body',
  'end-of-data',
  'rset',
  'quit',
  'idle',
] as const

export const STAGES = ['dns', 'connect', ...SPOKEN_STAGES] as const

export type SpokenStage = (typeof SPOKEN_STAGES)[number]
export type FaultStage = (typeof STAGES)[number]

/** Which mail and which host a rule is about: everything given must hold. Texts may contain `*`. */
export interface Where {
  /** The recipient's domain, or that of the host before RCPT; `.example.net` stands for everything below it. */
  readonly domain?: string | undefined
  /** The name of the host that was dialled. */
  readonly mx?: string | undefined
  readonly recipient?: string | undefined
  readonly sender?: string | undefined
  readonly helo?: string | undefined
  /** The address of the client. */
  readonly client?: string | undefined
  /** Bytes, as announced at MAIL, as counted at the end of data. */
  readonly sizeOver?: number | undefined
  readonly sizeUnder?: number | undefined
  readonly header?: { readonly name: string; readonly value: string } | undefined
}

/** What is counted separately: everything together, or each recipient, sender … by itself. */
export const COUNTED_BY = ['rule', 'recipient', 'sender', 'triplet', 'client', 'mx'] as const
export type CountedBy = (typeof COUNTED_BY)[number]

/** At which of its occasions a rule acts: everything given must hold. Times count from the beginning of the script. */
export interface When {
  readonly per: CountedBy
  readonly first?: number | undefined
  readonly nth?: readonly number[] | undefined
  readonly every?: number | undefined
  readonly probability?: number | undefined
  readonly from?: Duration | undefined
  readonly until?: Duration | undefined
  /** Bad for a while, good for a while, and again. */
  readonly flapping?: { readonly bad: Duration; readonly good: Duration } | undefined
  /** A triplet of client, sender and recipient is let in between `delay` and `window` after it was first seen. */
  readonly greylist?: { readonly delay: Duration; readonly window: Duration } | undefined
  /** More connections than so many are open. */
  readonly connectionsOver?: number | undefined
  /** A token bucket; once it is empty the rule acts for `penalty`, or until there is a token again. */
  readonly rate?: { readonly count: number; readonly per: Duration; readonly penalty: Duration } | undefined
  /** The mailbox holds so many messages already. */
  readonly quota?: number | undefined
  /** The transaction has so many recipients already. */
  readonly recipientsOver?: number | undefined
}

export const DNS_FAULTS = ['servfail', 'nxdomain', 'no-data', 'null-mx', 'refused', 'timeout'] as const
export type DnsFault = (typeof DNS_FAULTS)[number]

export const CONNECT_FAULTS = ['refused', 'unreachable', 'timeout', 'reset', 'closed'] as const
export type ConnectFault = (typeof CONNECT_FAULTS)[number]

export const DROPS = ['fin', 'rst'] as const
export type Drop = (typeof DROPS)[number]

/** What is sent in place of the usual reply. */
export type Saying =
  | { readonly kind: 'usual' }
  | { readonly kind: 'reply'; readonly lines: readonly string[] }
  /** Bytes that need not be a reply, one character each. */
  | { readonly kind: 'raw'; readonly bytes: string }
  | { readonly kind: 'nothing' }

/** What the far side says at a stage, how, and what it does then. */
export interface Manner {
  readonly say: Saying
  /** Silence before the first byte. */
  readonly delay: Duration
  /** The pause between two bytes, or none: all at once. */
  readonly drip?: Duration | undefined
  /** Sent in two pieces, the first this long. */
  readonly split?: { readonly at: number; readonly gap: Duration } | undefined
  readonly repeat: number
  /** Only so many bytes are sent. */
  readonly cut?: number | undefined
  /** `hush`: nothing is ever said again, and the connection stays. */
  readonly ending: 'go-on' | 'hush' | Drop
}

/** What happens at one stage. */
export type Fault =
  | { readonly at: 'dns'; readonly dns: DnsFault | 'slow'; readonly delay: Duration }
  | { readonly at: 'connect'; readonly connect: ConnectFault | 'slow'; readonly delay: Duration }
  | { readonly at: 'ehlo'; readonly manner: Manner; readonly extensions?: readonly string[] | undefined }
  /** `early`: said together with the reply before it, when nobody has asked yet. */
  | {
      readonly at: 'greeting' | 'helo' | 'starttls' | 'handshake' | 'auth' | 'mail' | 'rcpt' | 'data' | 'rset' | 'quit'
      readonly manner: Manner
    }
  /** Comes after so many bytes of the content; `readRate`: bytes read in a second from then on. */
  | { readonly at: 'body'; readonly manner: Manner; readonly after: number; readonly readRate?: number | undefined }
  /** `keep`: the mail is in the mailbox, whatever the client is told. */
  | { readonly at: 'end-of-data'; readonly manner: Manner; readonly keep: boolean }
  /** Comes when nothing was asked for so long after a message. */
  | { readonly at: 'idle'; readonly manner: Manner; readonly after: Duration }

export interface Rule {
  readonly name: string
  readonly where: Where
  readonly when: When
  readonly fault: Fault
  /** Said together with the reply to the stage before, when nobody has asked yet. */
  readonly early: boolean
}

/** Names and addresses of a domain or a host, as DNS tells them. */
export interface Zone {
  readonly mx: readonly { readonly preference: number; readonly exchange: string }[]
  readonly a: readonly string[]
  readonly aaaa: readonly string[]
}

/** Everything a script says. The first rule that holds decides. */
export interface Script {
  readonly rules: readonly Rule[]
  readonly zones: ReadonlyMap<string, Zone>
}

export const NO_SCRIPT: Script = { rules: [], zones: new Map() }
