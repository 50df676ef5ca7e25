/** A recorder of events without subscriptions, which makes none. */
import { EventRecorder } from '../../src/outbox/event-recorder.ts'

export const idleRecorder = new EventRecorder({ now: () => 0, wallOffset: () => 0 })
