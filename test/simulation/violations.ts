/** All invariants, and the violations of a run. */
import {
  acknowledgedIsOnDisk,
  contentIsIntact,
  deliveredHasArrived,
  outcomesAreTrue,
  queueIsAsCommitted,
  takenUpRightly,
} from './invariants/accounts.ts'
import { eventsTellTheHistory } from './invariants/events.ts'
import { eventsAreSent } from './invariants/sent-events.ts'
import { closedIsLeftAlone, leasesAreBounded, limitsHold, pausesAreKept, providersHold } from './invariants/flow.ts'
import { nothingBeginsAfterAnOrder } from './invariants/orders.ts'
import { noticesAreRight, warningsComeInTime } from './invariants/notices.ts'
import { nothingIsStuck, scheduleIsKept } from './invariants/schedule.ts'
import { mailKeepsItsPlace, partsAreFair } from './invariants/shares.ts'
import { windowsFollowTheFeedback } from './invariants/windows.ts'
import type { Run } from './run.ts'
import { replay, type InvariantMaker, type Violation } from './replay.ts'

export const INVARIANTS: Readonly<Record<string, InvariantMaker>> = {
  acknowledgedIsOnDisk,
  queueIsAsCommitted,
  takenUpRightly,
  outcomesAreTrue,
  contentIsIntact,
  deliveredHasArrived,
  scheduleIsKept,
  nothingIsStuck,
  limitsHold,
  providersHold,
  pausesAreKept,
  closedIsLeftAlone,
  leasesAreBounded,
  nothingBeginsAfterAnOrder,
  noticesAreRight,
  warningsComeInTime,
  windowsFollowTheFeedback,
  eventsTellTheHistory,
  eventsAreSent,
  partsAreFair,
  mailKeepsItsPlace,
}

export const violationsOf = ({ history, scenario }: Run): readonly Violation[] => replay(history.trace, scenario, INVARIANTS)
