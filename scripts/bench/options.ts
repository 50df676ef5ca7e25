/**
 * The options of the bench. A bad one becomes one sentence and exit code 64.
 */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { CASES, type Case } from './cases.ts'

export const CONTESTANTS = ['tree', 'base', 'without-store', 'maps', 'limits', 'shares', 'without-headers', 'haraka', 'postfix'] as const
export type ContestantName = (typeof CONTESTANTS)[number]

/** Contestants that are measured when --only names them. */
const NAMED_ONLY: ReadonlySet<ContestantName> = new Set(['maps', 'limits', 'shares', 'without-headers', 'haraka'])

export interface Options {
  readonly rounds: number
  /** Messages in a turn of a case with share 1. */
  readonly messages: number
  /** Messages in a drain. */
  readonly drained: number
  readonly cases: readonly Case[]
  readonly base: string | null
  readonly only: readonly ContestantName[]
  readonly json: string
}

export class UsageError extends Error {}

/** Names with commas between them, in lines of at most 78 columns. */
function wrapped(all: readonly string[]): string {
  const lines = ['']
  for (const name of all) {
    const line = lines.at(-1) ?? ''
    if (line.length + name.length > 74) lines.push(name)
    else lines[lines.length - 1] = line === '' ? name : `${line}, ${name}`
  }
  return lines.map((line) => `  ${line}`).join(',\n')
}

export const USAGE = `Usage: npm run bench -- [--quick] [options]
       npm run bench -- postgres|page|dkim|events|queue|memory|slow-disk|tls
           [options]
       npm run bench -- report FILE...

Measures relays in turns on loopback: CPU time per message of all processes of
a relay, messages per second, latencies and memory. The others measure figures
with targets: the queue in PostgreSQL, the page, signatures, webhooks, a million
queued messages, memory, a slow disk, TLS; --help lists their options. report
publishes results in docs/performance.md.

Contestants:
  tree            deferd of the working tree
  base            deferd at another commit (needs --base)
  without-store   the working tree with a store that keeps nothing
  maps            the working tree with ten maps of 10,000 entries (only when
                  --only names it)
  limits          the working tree with limits of the queue and of its shares
                  (only when --only names it)
  shares          the working tree with fair shares (only when --only names it)
  without-headers
                  the working tree with queue_index_headers = no (only when
                  --only names it)
  haraka          Haraka out of npm, which needs a network (only when --only
                  names it)
  postfix         a private instance of the installed Postfix (needs root)

Cases (docs/bench.md describes them):
${wrapped(CASES.map(({ name }) => name))}

Options:
  --quick         kept and new with 2000 messages, 5 rounds; without it all
                  cases with 4000 messages or a part of them, 9 rounds
  --rounds N      rounds, 1 to 99
  --messages N    messages in a turn, 1 to 20000 (postfix gets a quarter)
  --drained N     deferred messages that are drained, 100 to 1000000 (default
                  100000; postfix gets a fiftieth)
  --base COMMIT   measure deferd at this commit too
  --only NAMES    these contestants only, with commas between them
  --cases NAMES   these cases only, with commas between them
  --json FILE     where the result goes (default ./bench-result.json)
  --help          this text
`

const DEFAULTS = { quick: { rounds: 5, messages: 2_000 }, full: { rounds: 9, messages: 4_000 } }

const OPTIONS = {
  quick: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  messages: { type: 'string' },
  drained: { type: 'string' },
  base: { type: 'string' },
  only: { type: 'string' },
  cases: { type: 'string' },
  json: { type: 'string', default: 'bench-result.json' },
  help: { type: 'boolean', default: false },
} as const

/** The options, or `help`. Throws a UsageError. */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const values = readArguments(args, OPTIONS)
  if (values.help) return 'help'
  const defaults = values.quick ? DEFAULTS.quick : DEFAULTS.full
  return {
    rounds: wholeNumber('--rounds', values.rounds, defaults.rounds, [1, 99]),
    messages: wholeNumber('--messages', values.messages, defaults.messages, [1, 20_000]),
    drained: wholeNumber('--drained', values.drained, 100_000, [100, 1_000_000]),
    cases: casesOf(values.cases, values.quick),
    base: commit(values.base),
    only: contestantsOf(values.only),
    json: values.json,
  }
}

/** The values of arguments. Throws a UsageError. */
export function readArguments<const Known extends NonNullable<ParseArgsConfig['options']>>(args: readonly string[], options: Known) {
  try {
    return parseArgs({ args: [...args], options }).values
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split('. ')
    throw new UsageError(`${sentence.replace(/\.$/, '')}; --help lists the options`, { cause: error })
  }
}

function wholeNumber(name: string, text: string | undefined, otherwise: number, [least, most]: readonly [number, number]): number {
  if (text === undefined) return otherwise
  const number = Number(text)
  if (/^\d+$/.test(text) && number >= least && number <= most) return number
  throw new UsageError(`${name} takes a whole number from ${least} to ${most}, not "${text}"`)
}

/** Refuses what git would read as an option. */
function commit(text: string | undefined): string | null {
  if (text === undefined) return null
  if (text !== '' && !text.startsWith('-')) return text
  throw new UsageError(`--base takes a commit, not "${text}"`)
}

function contestantsOf(text: string | undefined): readonly ContestantName[] {
  if (text === undefined) return CONTESTANTS.filter((name) => !NAMED_ONLY.has(name))
  const asked = names('--only', text, CONTESTANTS)
  return CONTESTANTS.filter((known) => asked.includes(known))
}

function casesOf(text: string | undefined, quick: boolean): readonly Case[] {
  if (text === undefined) return CASES.filter((load) => load.quick || !quick)
  const known = CASES.map(({ name }) => name)
  const asked = names('--cases', text, known)
  return CASES.filter(({ name }) => asked.includes(name))
}

function names(option: string, text: string, known: readonly string[]): readonly string[] {
  const asked = text.split(',').map((name) => name.trim())
  const unknown = asked.find((name) => !known.includes(name))
  if (unknown === undefined) return asked
  throw new UsageError(`${option} takes names out of ${known.join(', ')}, not "${unknown}"`)
}
