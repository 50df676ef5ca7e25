/**
 * Fault rules as values. A rule defines where it applies (mail and host), when it acts (frequency, times, load), and its action
 * at one stage of the session. TOML scripts, code and the addresses of a sink produce the same rules.
 */
import type { TlsaRecord } from '../../system/net.ts'
import type { Duration } from '../../system/clock.ts'
import type { AuthorityRule } from '../oauth/authority-rule.ts'
import type { PublishedPolicy } from './published-policies.ts'
import type { HostCertificate } from './world-certificates.ts'

/** Stages with a reply, in the order of a session. */
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

/** All stages, including those before the session. */
export const STAGES = ['dns', 'connect', ...SPOKEN_STAGES] as const

/** A stage with a reply. */
export type SpokenStage = (typeof SPOKEN_STAGES)[number]
/** Stage of a rule. */
export type FaultStage = (typeof STAGES)[number]

/** Mail and hosts to which a rule applies. All members that are not undefined must match. Texts may contain `*`. */
export interface Where {
  /** Domain of the recipient; before RCPT, domain of the host. `.example.net` matches all subdomains of example.net. */
  readonly domain: string | undefined
  /** Name of the host to which the client connects. */
  readonly mx: string | undefined
  readonly recipient: string | undefined
  readonly sender: string | undefined
  readonly helo: string | undefined
  readonly client: string | undefined
  /** Messages of more bytes than this: by SIZE at MAIL, as counted at the end of data. */
  readonly sizeOver: number | undefined
  /** Messages of fewer bytes than this; see `sizeOver`. */
  readonly sizeUnder: number | undefined
  readonly header: { readonly name: string; readonly value: string } | undefined
}

/** Units by which occasions are counted separately. `rule` counts all occasions together. */
export const COUNTED_BY = ['rule', 'recipient', 'sender', 'triplet', 'client', 'mx'] as const
export type CountedBy = (typeof COUNTED_BY)[number]

/** Occasions on which a rule acts. All members that are not undefined must hold. Times are in milliseconds since the start of the script. */
export interface When {
  readonly per: CountedBy
  readonly first: number | undefined
  readonly nth: readonly number[] | undefined
  readonly every: number | undefined
  readonly probability: number | undefined
  readonly from: Duration | undefined
  readonly until: Duration | undefined
  /** The rule alternates: it acts for `bad`, then does not act for `good`. */
  readonly flapping: { readonly bad: Duration; readonly good: Duration } | undefined
  /**
   * The rule acts on a triplet of client, sender and recipient until `delay` after its first attempt. A triplet without an
   * attempt between `delay` and `window` after the first one is treated as new.
   */
  readonly greylist: { readonly delay: Duration; readonly window: Duration } | undefined
  /** The rule acts while more connections than this are open. */
  readonly connectionsOver: number | undefined
  /**
   * Token bucket of `count` tokens, which fills up in `per`. When it is empty, the rule acts for `penalty`, and at least until
   * the next token.
   */
  readonly rate: { readonly count: number; readonly per: Duration; readonly penalty: Duration } | undefined
  /** The rule acts while the mailbox holds at least this number of messages. */
  readonly quota: number | undefined
  /** The rule acts on recipients beyond this number in one transaction. */
  readonly recipientsOver: number | undefined
}

export const DNS_FAULTS = ['servfail', 'nxdomain', 'no-data', 'null-mx', 'refused', 'timeout'] as const
/** Result of a failed lookup. */
export type DnsFault = (typeof DNS_FAULTS)[number]

export const CONNECT_FAULTS = ['refused', 'unreachable', 'timeout', 'reset', 'closed'] as const
export type ConnectFault = (typeof CONNECT_FAULTS)[number]

export const DROPS = ['fin', 'rst'] as const
export type Drop = (typeof DROPS)[number]

/** Text of the reply: the default text, other lines, raw bytes, or none. */
export type ReplyText =
  | { readonly kind: 'usual' }
  | { readonly kind: 'reply'; readonly lines: readonly string[] }
  /** Bytes that need not be a valid reply, one character per byte. */
  | { readonly kind: 'raw'; readonly bytes: string }
  | { readonly kind: 'nothing' }

/** Reply at a stage, how it is sent, and the action after it. Times are in milliseconds. */
export interface ReplyAction {
  readonly text: ReplyText
  /** Pause before the first byte. */
  readonly delay: Duration
  /** Pause between two bytes; undefined to send all at once. */
  readonly drip: Duration | undefined
  /** The reply is sent in two pieces with the pause `gap` between them. The first piece has `at` bytes. */
  readonly split: { readonly at: number; readonly gap: Duration } | undefined
  /** Number of times that the reply is sent. */
  readonly repeat: number
  /** Number of bytes of the reply that are sent. The remaining bytes are dropped. */
  readonly cut: number | undefined
  /** Action after the reply. With `stall`, nothing more is sent and the connection stays open. */
  readonly ending: 'continue' | 'stall' | Drop
}

/** Fault at one stage. */
export type Fault =
  | { readonly at: 'dns'; readonly dns: DnsFault | 'slow'; readonly delay: Duration }
  | { readonly at: 'connect'; readonly connect: ConnectFault | 'slow'; readonly delay: Duration }
  | { readonly at: 'ehlo'; readonly action: ReplyAction; readonly extensions: readonly string[] | undefined }
  | {
      readonly at: 'greeting' | 'helo' | 'starttls' | 'handshake' | 'auth' | 'mail' | 'rcpt' | 'data' | 'rset' | 'quit'
      readonly action: ReplyAction
    }
  /** Acts after `after` bytes of the content. From then on, `readRate` bytes are read per second. */
  | { readonly at: 'body'; readonly action: ReplyAction; readonly after: number; readonly readRate: number | undefined }
  /** `keep` is true when the message is added to the mailbox, independent of the reply. */
  | { readonly at: 'end-of-data'; readonly action: ReplyAction; readonly keep: boolean }
  /** Acts when no command follows a message within `after` milliseconds. */
  | { readonly at: 'idle'; readonly action: ReplyAction; readonly after: Duration }

export interface Rule {
  /** Name in events and error messages. */
  readonly name: string
  /** Keys as they were written. */
  readonly written: Readonly<Record<string, unknown>>
  readonly where: Where
  readonly when: When
  readonly fault: Fault
  /** True if the reply is sent together with that of the previous stage, before the command arrives. */
  readonly early: boolean
}

/** DNS records of a domain or a host. */
export interface Zone {
  readonly mx: readonly { readonly preference: number; readonly exchange: string }[]
  readonly a: readonly string[]
  readonly aaaa: readonly string[]
  /** TXT records, each with its strings joined; none when absent. */
  readonly txt?: readonly string[] | undefined
  /** Names of an address, at a zone that is an address (PTR); none when absent. */
  readonly ptr?: readonly string[] | undefined
  readonly tlsa?: readonly TlsaRecord[] | undefined
  /** Name of which this one is an alias (CNAME). */
  readonly alias?: string | undefined
  /** True when a validating resolver finds the answers authentic. When absent, as for the parent domain; false at the top. */
  readonly secure?: boolean | undefined
}

/** Rules, zones, certificates and policies of a script. The first matching rule is applied. */
export interface Script {
  readonly rules: readonly Rule[]
  readonly authority: readonly AuthorityRule[]
  readonly zones: ReadonlyMap<string, Zone>
  /** Certificates of hosts, which offer STARTTLS with them. */
  readonly certificates: ReadonlyMap<string, HostCertificate>
  /** MTA-STS policies of domains. */
  readonly policies: ReadonlyMap<string, PublishedPolicy>
}

export const NO_SCRIPT: Script = { rules: [], authority: [], zones: new Map(), certificates: new Map(), policies: new Map() }
