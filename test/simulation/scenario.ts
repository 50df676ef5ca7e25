/**
 * A scenario of a simulated relay, as plain data: it is generated from a seed and can be repeated, reduced and printed. Times are
 * milliseconds since the start of the world.
 */
import type { Duration } from '../../src/system/clock.ts'
import type { OperationName } from '../../src/queue/operation-request.ts'
import type { RuleText } from '../../src/testkit/index.ts'

export type Notify = 'NEVER' | 'SUCCESS' | 'FAILURE' | 'DELAY' | 'SUCCESS,FAILURE' | 'FAILURE,DELAY' | 'SUCCESS,FAILURE,DELAY'

export interface Mail {
  /** Number of the mail, and local part of its Message-ID. */
  readonly number: number
  /** Empty for `<>`. */
  readonly sender: string
  readonly to: readonly { readonly address: string; readonly notify?: Notify | undefined }[]
  /** Size of the text in bytes. */
  readonly size: number
  readonly ret?: 'FULL' | 'HDRS' | undefined
}

/** Messages that an operation selects: all, or the n-th of those in the queue (modulo their number). */
export type Pick = 'all' | number

export type Step = { readonly at: Duration } & (
  | { readonly do: 'mail'; readonly mail: Mail }
  | { readonly do: 'crash'; readonly downFor: Duration }
  | { readonly do: 'restart' }
  | { readonly do: OperationName; readonly pick: Pick }
  | { readonly do: 'suspend' | 'resume'; readonly destination: string }
  | { readonly do: 'set the clock'; readonly by: Duration }
  /** The store cannot commit. */
  | { readonly do: 'fill the disk'; readonly time: Duration }
  | { readonly do: 'look' }
)

/** Kills the relay at its n-th commit: just before it, or just after it, before the result is returned. */
export interface CommitCrash {
  readonly commit: number
  readonly side: 'before' | 'after'
  readonly downFor: Duration
}

export type Value = string | number | boolean | readonly string[]

export interface Scenario {
  readonly seed: number
  readonly config: Readonly<Record<string, Value>>
  /** `[destination."…"]` tables. */
  readonly tables: Readonly<Record<string, Readonly<Record<string, Value>>>>
  /** A provider of some destinations, with its concurrency limit; absent without. */
  readonly provider?: { readonly of: readonly string[]; readonly limit: number } | undefined
  readonly storage: 'memory' | 'file'
  /** Duration of a commit. */
  readonly commitTakes: Duration
  readonly destinations: readonly string[]
  readonly faults: readonly RuleText[]
  /** Steps in the order of their times. */
  readonly steps: readonly Step[]
  readonly crashes: readonly CommitCrash[]
  /** True when the remote servers recover at the end. */
  readonly ends: 'well' | 'badly'
  /** Replacement of recipients; absent without any. */
  readonly rewriting?: SimulatedRewriting
  /** Receiver of webhooks; absent without any. */
  readonly receiver?: SimulatedReceiver | undefined
  /** `node_lease` of several nodes; absent for one relay. */
  readonly lease?: Duration
  /** Fair shares; absent without. */
  readonly shares?: SimulatedShares
}

/** Shares and classes that compete. The share of a mail is the domain of its sender, and its class the local part. */
export interface SimulatedShares {
  /** Of what there is too little: slots of the relay, connections to a provider, or those to one destination. */
  readonly short: 'slots' | 'provider' | 'destination'
  /** Weights of the shares. */
  readonly weights: Readonly<Record<string, number>>
  /** Classes with weights and reserves in percent; empty without classes. */
  readonly classes: Readonly<Record<string, { readonly weight: number; readonly reserve: number }>>
}

/** A receiver of the events of a world. */
export interface SimulatedReceiver {
  /** It refuses the events whose number is a multiple. */
  readonly refuses: number
  /** It fails once for the events whose number is a multiple. */
  readonly failsAt: number
  /** Time in which it answers 503 to all. */
  readonly down: { readonly from: Duration; readonly until: Duration }
  /** Events in one request. */
  readonly batch: number
}

/** Rules by which mail has other recipients than those of its client. */
export interface SimulatedRewriting {
  /** virtual_alias_maps: addresses in place of an address. */
  readonly aliases: Readonly<Record<string, readonly string[]>>
  /** always_bcc. */
  readonly copyTo: string
  /** Access table: senders whose mail goes to one address in place of all. */
  readonly redirects: Readonly<Record<string, string>>
}

/** Domain of the senders, whose mail server never fails. */
export const OWN_DOMAIN = 'us.example'

/** Lines that reproduce the scenario. */
export function tell(scenario: Scenario): string {
  const { config, tables, provider, storage, commitTakes, faults, steps, crashes, ends, rewriting, receiver, shares } = scenario
  const lines = [
    `seed ${scenario.seed}, queue in ${storage}, a commit takes ${commitTakes} ms, ends ${ends}`,
    `config ${JSON.stringify(config)}`,
    ...(rewriting === undefined ? [] : [`rewriting ${JSON.stringify(rewriting)}`]),
    ...(receiver === undefined ? [] : [`receiver ${JSON.stringify(receiver)}`]),
    ...(shares === undefined ? [] : [`shares ${JSON.stringify(shares)}`]),
    ...(provider === undefined ? [] : [`provider ${JSON.stringify(provider)}`]),
    ...Object.entries(tables).map(([name, table]) => `destination ${name} ${JSON.stringify(table)}`),
    ...faults.map((fault) => `fault ${JSON.stringify(fault)}`),
    ...crashes.map(({ commit, side, downFor }) => `crash ${side} commit ${commit}, down for ${downFor} ms`),
    ...steps.map((step) => `step ${JSON.stringify(step)}`),
  ]
  return lines.join('\n')
}

/** The tables of a configuration with the provider of a scenario. */
export const providerConfig = ({ provider }: { readonly provider?: Scenario['provider'] }) =>
  provider === undefined
    ? {}
    : { provider: { trees: { mx: provider.of.map((name) => `.${name}`), provider_concurrency_limit: String(provider.limit) } } }
