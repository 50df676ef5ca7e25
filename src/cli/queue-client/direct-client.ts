/**
 * Opens the queue for the duration of a command while no daemon runs. The command holds the daemon's lock and performs the
 * operation itself.
 */
import { AccessEntries } from '../../access/access-entries.ts'
import { DestinationPolicies } from '../../config/destination-policies.ts'
import type { Config } from '../../config/options.ts'
import type { MoveProgress, MoveRequest } from '../../queue/queue-move.ts'
import type { MachineClock } from '../../system/clock.ts'
import { QueueClock } from '../../system/queue-clock.ts'
import { Operations } from '../../queue/operations.ts'
import { storedScheduler } from '../../queue/stored-scheduler.ts'
import { openStore } from '../../store/sqlite/open-store.ts'
import { EventRecorder } from '../../outbox/event-recorder.ts'
import { SubscriptionChanges } from '../../subscriptions/subscription-changes.ts'
import { Events } from '../../telemetry/events.ts'
import { directClient } from './daemon-client.ts'
import type { QueueClient } from '../shell/queue-client.ts'

/** Takes ownership of the queue until the client is closed. Does not create a missing queue (NoSuchQueue). */
export async function openDirectClient(config: Config, machine: MachineClock): Promise<QueueClient> {
  const { store, reader, close } = await openStore(config.queue_directory, { threads: false, create: false })
  const clock = new QueueClock(machine)
  clock.resume(await reader.clockRecord(), config.maximal_backoff_time)
  // Events have no listener here, because the command prints its result and the audit log records it.
  const events = new Events(() => clock.now())
  const policies = new DestinationPolicies(config)
  const recorder = new EventRecorder(clock)
  await recorder.refresh(store)
  const scheduler = storedScheduler(store, reader, recorder)
  const operations = new Operations({
    store,
    reader,
    events,
    recorder,
    clock,
    policies: () => policies,
    retention: () => config,
    scheduler,
  })
  const move = async (request: MoveRequest, progress: (soFar: MoveProgress) => void) => {
    const { moveAlone } = await import('./move-alone.ts')
    // Nothing is in delivery.
    const source = {
      store,
      moves: store,
      reader,
      clock,
      name: config.queue_directory,
      isDelivered: () => false,
      close: async () => undefined,
    }
    return moveAlone(config, source, { request, progress, machine })
  }
  const subscriptions = new SubscriptionChanges({ store, reader, clock, changed: () => recorder.refresh(store) })
  return directClient(operations, { move, close, access: new AccessEntries({ store, reader, clock }), subscriptions, store, clock })
}
