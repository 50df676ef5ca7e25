/**
 * The options of the bench. A bad one becomes one sentence and exit code 64.
 */
import { parseArgs } from 'node:util'

export const CONTESTANTS = ['tree', 'base', 'without-store', 'maps', 'haraka', 'postfix'] as const
export type ContestantName = (typeof CONTESTANTS)[number]

export interface Options {
  readonly quick: boolean
  readonly rounds: number
  /** Messages in a turn of a case with share 1. */
  readonly messages: number
  readonly base: string | null
  readonly only: readonly ContestantName[]
  readonly json: string
}

export class UsageError extends Error {}

export const USAGE = `Usage: npm run bench -- [--quick] [options]
       npm run bench -- postgres|page|dkim|events|queue|slow-disk [options]

Measures relays in turns on loopback: CPU time per message of all processes of
a relay, and messages delivered per second. The others measure figures with
targets: the queue in PostgreSQL, the page, signatures, webhooks, a million
queued messages, a slow disk; --help lists their options.

Contestants:
  tree            deferd of the working tree
  base            deferd at another commit (needs --base)
  without-store   the working tree with a store that keeps nothing
  maps            the working tree with ten maps of 10,000 entries (only when
                  --only names it)
  haraka          Haraka out of npm, which needs a network (only when --only
                  names it)
  postfix         a private instance of the installed Postfix (needs root)

Options:
  --quick         2 kB messages over kept and over new connections, 5 rounds;
                  without it 9 rounds and also big mail and many recipients
  --rounds N      rounds, 1 to 99
  --messages N    messages in a turn, 1 to 20000 (postfix gets a quarter)
  --base COMMIT   measure deferd at this commit too
  --only NAMES    these contestants only, with commas between them
  --json FILE     where the result goes (default ./bench-result.json)
  --help          this text
`

const DEFAULTS = { quick: { rounds: 5, messages: 2_000 }, full: { rounds: 9, messages: 4_000 } }

const OPTIONS = {
  quick: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  messages: { type: 'string' },
  base: { type: 'string' },
  only: { type: 'string' },
  json: { type: 'string', default: 'bench-result.json' },
  help: { type: 'boolean', default: false },
} as const

/** The options, or `help`. Throws a UsageError. */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const values = readArguments(args)
  if (values.help) return 'help'
  const defaults = values.quick ? DEFAULTS.quick : DEFAULTS.full
  return {
    quick: values.quick,
    rounds: wholeNumber('--rounds', values.rounds, defaults.rounds, 99),
    messages: wholeNumber('--messages', values.messages, defaults.messages, 20_000),
    base: commit(values.base),
    only: names(values.only),
    json: values.json,
  }
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split('. ')
    throw new UsageError(`${sentence.replace(/\.$/, '')}; --help lists the options`, { cause: error })
  }
}

function wholeNumber(name: string, text: string | undefined, otherwise: number, most: number): number {
  if (text === undefined) return otherwise
  const number = Number(text)
  if (/^\d+$/.test(text) && number >= 1 && number <= most) return number
  throw new UsageError(`${name} takes a whole number from 1 to ${most}, not "${text}"`)
}

/** Refuses what git would read as an option. */
function commit(text: string | undefined): string | null {
  if (text === undefined) return null
  if (text !== '' && !text.startsWith('-')) return text
  throw new UsageError(`--base takes a commit, not "${text}"`)
}

function names(text: string | undefined): readonly ContestantName[] {
  if (text === undefined) return CONTESTANTS.filter((name) => name !== 'maps' && name !== 'haraka')
  const asked = text.split(',').map((name) => name.trim())
  const unknown = asked.find((name) => !CONTESTANTS.some((known) => known === name))
  if (unknown === undefined) return CONTESTANTS.filter((known) => asked.includes(known))
  throw new UsageError(`--only takes names out of ${CONTESTANTS.join(', ')}, not "${unknown}"`)
}
