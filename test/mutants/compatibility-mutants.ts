/** Planted breaches of the promise of docs/compatibility.md: one removal of each kind. Each is found by the test of the public surface. */
import type { SafetyMutant } from './safety-mutants.ts'

export interface CompatibilityMutant extends SafetyMutant {
  /** Name of the test that fails. */
  readonly fails: string
}

const removal = (name: string, file: string, replace: string, by: string, part: string): CompatibilityMutant => ({
  name,
  file: `src/${file}`,
  replace,
  by,
  test: 'test/upgrade/surface.test.ts',
  fails: `${part} of 0.9.0 are all there, as they were`,
})

export const COMPATIBILITY_MUTANTS: readonly CompatibilityMutant[] = [
  removal(
    'a JSON member is removed',
    'resources/plans/cancellation-json.ts',
    "    too_late: recipients.describe('with an outcome, or in transfer'),\n",
    '',
    'api',
  ),
  removal('a metric is renamed', 'telemetry/metrics/counters.ts', "'accepted_bytes_total'", "'accepted_octets_total'", 'metrics'),
  removal(
    'an option of a command is removed',
    'cli/commands/queue/queue-list.ts',
    "    .option('--wide', 'one line per message, with all recipients and the whole reason')\n",
    '',
    'commands',
  ),
  removal(
    'a field of the log is removed',
    'telemetry/kinds/delivery-kinds.ts',
    "      hint: ({ attempt }) => (attempt.outcome === 'delivered' ? null : hintOf(attempt.status)),\n",
    '',
    'log',
  ),
  removal('an exit code is removed', 'cli/shell/exit.ts', '  cannotCreate: 73,\n', '', 'exit codes'),
]
