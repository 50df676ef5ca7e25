/**
 * Questions to the running nodes of a shared queue about their memory, from each other and from commands. A question is a word, which a name or a
 * search may follow; the answers are JSON (store/membership/questions). A node whose version does not know a question does not answer it.
 */
import type { MessageId } from '../mail/message.ts'
import type { LiveStatus } from '../queue/queue-status.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import type { LiveShare } from '../queue/scheduler/turns/share-activity.ts'
import type { NodeSettings } from '../resources/settings-json.ts'
import type { DeliverySlots } from '../store/destination-status.ts'
import type { ListedNode, NodeDirectory } from '../store/membership/node-directory.ts'
import type { Duration } from '../system/clock.ts'
import type { FoundLines } from '../telemetry/recent-log.ts'
import type { KnownInMemory } from './queue-view.ts'

/** The answer to each question. */
export interface NodeAnswers {
  /** Destinations of own shards. */
  readonly destinations: readonly LiveDestination[]
  /** Destinations in memory. */
  readonly memory: readonly LiveDestination[]
  /** The destination of this name. */
  readonly destination: KnownInMemory
  readonly status: LiveStatus
  /** The status with the largest destinations only. */
  readonly glance: LiveStatus
  readonly slots: DeliverySlots
  readonly shares: readonly LiveShare[]
  /** Messages of the deliveries in flight. */
  readonly transfers: readonly MessageId[]
  /** The settings that all nodes should share. */
  readonly settings: NodeSettings
  /** Lines of the log by a LogSearch, as JSON. */
  readonly log: FoundLines
}

export type NodeQuestion = keyof NodeAnswers

/** Answers the questions; each function gets what follows the word. */
export type NodeAnswering = { readonly [Q in NodeQuestion]: (rest: string) => NodeAnswers[Q] | Promise<NodeAnswers[Q]> }

/** Answers of nodes, and the names of those that did not answer in time, or that do not know the question. */
export interface Answered<Q extends NodeQuestion> {
  readonly answers: readonly { readonly node: ListedNode; readonly answer: NodeAnswers[Q] }[]
  readonly silent: readonly string[]
}

/** Asks all nodes, and waits up to `patience` for their answers. `rest` follows the question. */
export async function askNodes<Q extends NodeQuestion>(
  directory: Pick<NodeDirectory, 'ask'>,
  question: Q,
  { patience, rest }: { readonly patience: Duration; readonly rest?: string | undefined },
): Promise<Answered<Q>> {
  return (await directory.ask(rest === undefined ? question : `${question} ${rest}`, patience)) as Answered<Q>
}
