/** Page of the planner: the attempts of each policy, and the extra wait after outages. */
import type { Page } from './page.ts'
import type { Plan } from '../../planner/plan.ts'
import { schedulePlots } from '../../presentation/plots/schedule-plots.ts'

export function schedulePage(plans: readonly Plan[], table: Page['table'], command: string): Page {
  return {
    title: 'Retry schedules',
    about:
      'Attempts for mail that is never accepted, from arrival to its return. Waits are those of mail that arrived when the outage began; the end of the outage is uniform within ± 10 %. A † means that some mail of that outage is returned before the end.',
    command,
    table,
    plots: schedulePlots(plans),
  }
}
