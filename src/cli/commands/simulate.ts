/** `deferd simulate`: the planner of retries, whole scenarios, and the contention simulator. */
import type { Command } from 'commander'
import type { Shell } from '../shell.ts'
import { addSimulateContention } from './simulate-contention.ts'
import { addSimulateRun } from './simulate-run.ts'
import { addSimulateSchedule } from './simulate-schedule.ts'

/** Returns the group, to which others add their simulations. */
export function addSimulate(program: Command, shell: Shell): Command {
  const simulate = program.command('simulate').description('plan retries, and simulate what they do to the other side')
  addSimulateSchedule(simulate, shell)
  addSimulateRun(simulate, shell)
  addSimulateContention(simulate, shell)
  return simulate
}
