/** `deferd simulate`: the retry planner, scenario runs and the contention simulator. */
import type { Command } from 'commander'
import type { Shell } from '../../shell/shell.ts'
import { addSimulateContention } from './simulate-contention.ts'
import { addSimulateRun } from './simulate-run.ts'
import { addSimulateSchedule } from './simulate-schedule.ts'

export function addSimulate(program: Command, shell: Shell): Command {
  const simulate = program.command('simulate').description('plan retries and simulate failures')
  addSimulateSchedule(simulate, shell)
  addSimulateRun(simulate, shell)
  addSimulateContention(simulate, shell)
  return simulate
}
