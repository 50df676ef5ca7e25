/** A recorder of events without subscriptions, which makes none. */
import { WallView } from '../../src/system/wall-view.ts'
import { EventRecorder } from '../../src/outbox/event-recorder.ts'

export const idleRecorder = new EventRecorder({ now: () => 0, wall: new WallView(() => 0) })
