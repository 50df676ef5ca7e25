/** The settings of a relay, and the ports of its environment. */
import type { AccessEntries } from '../access/access-entries.ts'
import type { ProviderDirectory } from '../config/provider-directory.ts'
import type { DeliveryAgent } from '../delivery/delivery-agent.ts'
import type { Membership } from '../store/membership/membership.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { Clock } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { Random } from '../system/random.ts'
import type { Signing } from '../system/signing.ts'
import type { Events } from '../telemetry/events.ts'
import type { RecentLog } from '../telemetry/recent-log.ts'
import type { RelaySettings } from './rules.ts'

export interface RelayDeps extends RelaySettings {
  readonly clock: Clock
  readonly random: Random
  readonly net: Net
  readonly store: QueueStore
  /** Membership among the nodes that share the queue; SOLE_MEMBERSHIP when absent. */
  readonly membership?: Membership | undefined
  readonly events: Events
  /** The last warnings and errors of the process; those of this relay when absent. */
  readonly log?: RecentLog | undefined
  /** Providers of destinations, which the store of a shared queue fills. Absent for a queue with one owner. */
  readonly providers?: ProviderDirectory | undefined
  /** Access entries of commands; none when absent. */
  readonly accessEntries?: Pick<AccessEntries, 'isEmpty' | 'find'> | undefined
  /** True while a drained node refuses mail; never when absent. */
  readonly isDraining?: (() => boolean) | undefined
  /** Signs with the DKIM keys; in the thread pool when absent. */
  readonly sign?: Signing | undefined
  /** Reads the queue. When absent, no MTA-STS policies are applied, and mail that quotas hold is not planned anew. */
  readonly reader?: QueueReader | undefined
  /** Wraps or replaces the SMTP agent, for simulations. */
  readonly watchAgent?: ((agent: DeliveryAgent) => DeliveryAgent) | undefined
}
