/** All that must hold, and what is wrong with a run. */
import {
  acknowledgedIsOnDisk,
  contentIsIntact,
  deliveredHasArrived,
  outcomesAreTrue,
  queueIsAsCommitted,
  takenUpRightly,
} from './invariants/accounts.ts'
import { closedIsLeftAlone, leasesAreBounded, limitsHold, pausesAreKept } from './invariants/flow.ts'
import { noticesAreRight, warningsComeInTime } from './invariants/notices.ts'
import { nothingIsStuck, scheduleIsKept } from './invariants/schedule.ts'
import { windowsFollowTheFeedback } from './invariants/windows.ts'
import type { Run } from './run.ts'
import { witness, type InvariantMaker, type Violation } from './witness.ts'

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
  pausesAreKept,
  closedIsLeftAlone,
  leasesAreBounded,
  noticesAreRight,
  warningsComeInTime,
  windowsFollowTheFeedback,
}

export const judge = ({ history, scenario }: Run): readonly Violation[] => witness(history.events, scenario, INVARIANTS)
