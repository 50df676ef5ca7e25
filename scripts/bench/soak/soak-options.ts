/**
 * The options of the soak. A bad one becomes one sentence and exit code 64.
 */
import { numberIn } from '../figures/figure-options.ts'
import { readArguments } from '../options.ts'

export interface SoakOptions {
  readonly minutes: number
  /** New messages per second. */
  readonly rate: number
  /** Percentage of the attempts that the sink refuses with a 4xx reply. */
  readonly failures: number
  readonly json: string
}

export const SOAK_USAGE = `Usage: npm run soak -- [options]

Sends mail at a constant rate through a daemon to a sink that refuses a part of
the attempts for the moment, prints a line each minute, and judges at the end:
memory that grows, the write-ahead log, the delay of the event loop, lost mail.
Exit code 0: all limits hold; 1: one does not.

Options:
  --minutes N     duration (default 480)
  --rate N        new messages per second, 1 to 2000 (default 400)
  --failures N    percentage of the attempts that fail, 0 to 90 (default 30)
  --json FILE     where the result goes (default ./soak.json)
  --help          this text
`

const OPTIONS = {
  minutes: { type: 'string', default: '480' },
  rate: { type: 'string', default: '400' },
  failures: { type: 'string', default: '30' },
  json: { type: 'string', default: 'soak.json' },
  help: { type: 'boolean', default: false },
} as const

/** The options, or `help`. Throws a UsageError. */
export function parseSoakOptions(args: readonly string[]): SoakOptions | 'help' {
  const values = readArguments(args, OPTIONS)
  if (values.help) return 'help'
  return {
    minutes: numberIn('--minutes', values.minutes, { least: 0.1, most: 100_000, isWhole: false }),
    rate: numberIn('--rate', values.rate, { least: 1, most: 2_000, isWhole: true }),
    failures: numberIn('--failures', values.failures, { least: 0, most: 90, isWhole: true }),
    json: values.json,
  }
}
