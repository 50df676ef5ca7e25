/** Refusals of the lab besides those of any request, and the problem that an error of a world is reported as. */
import { ConfigError, type Problem as ConfigProblem } from '../config/values/problem.ts'
import { HTTP_PROBLEMS, Problem, type InvalidPart, type ProblemKind } from '../http/problem-details.ts'

const kind = (slug: string, status: number, title: string, about: string): ProblemKind => ({ slug, status, title, about })

export const LAB_PROBLEMS = {
  unknownWorld: kind('unknown-world', 404, 'Unknown world', 'No world has this id or name; the detail lists those that are open.'),
  worldEnded: kind('world-ended', 410, 'World ended', 'The world was closed or has expired; the detail has its last hash.'),
  notYet: kind('not-yet', 409, 'Not yet', 'The condition did not hold within the real time `within`. Nothing has advanced.'),
  nameTaken: kind('name-taken', 409, 'Name taken', 'A world, or a webhook of the world, has this name.'),
  cannotSettle: kind('cannot-settle', 409, 'Cannot settle', 'The queue does not become empty: mail is suspended, or a timer repeats.'),
  tooMuchWork: kind('too-much-work', 409, 'Too much work', 'The call ran 1,000,000 timers; the detail has the instant that it reached.'),
  relayDown: kind(
    'relay-down',
    409,
    'Relay down',
    'The relay of the world has crashed and does not run yet: advance the clock. Or the world has none.',
  ),
  vacuous: kind('vacuous', 422, 'Vacuous assertion', 'The relay accepted no mail for the recipient, so that the assertion states nothing.'),
  targetNotAllowed: kind(
    'target-not-allowed',
    403,
    'Target not allowed',
    'A webhook leads to neither loopback nor a target of --allow-webhook.',
  ),
  tooManyWorlds: kind('too-many-worlds', 503, 'Too many worlds', 'As many worlds are open as `--max-worlds` allows.'),
  full: kind('world-full', 413, 'World full', 'The world holds 64 MB of mail: delete it and create another.'),
} as const satisfies Readonly<Record<string, ProblemKind>>

/** The problem of several invalid members. */
export function invalidMembers(errors: readonly InvalidPart[], cause?: unknown): Problem {
  const sentences = errors.map(({ pointer, detail }) => (pointer === '' ? detail : `${pointer}: ${detail}`))
  return new Problem(HTTP_PROBLEMS.invalid, `invalid request: ${sentences.join('; ')}`, { errors, cause })
}

const escaped = (member: string): string => member.replaceAll('~', '~0').replaceAll('/', '~1')

/** JSON pointer to a key of `values`, of which the path is `where`: its keys joined by dots, which keys may contain. */
function pointerTo(where: string, values: unknown): string {
  if (where === '') return ''
  const keys = typeof values === 'object' && values !== null ? Object.entries(values) : []
  const [key, value] = keys.find(([one]) => where === one || where.startsWith(`${one}.`)) ?? []
  if (key === undefined) return `/${where.split('.').map(escaped).join('/')}`
  return `/${escaped(key)}${pointerTo(where.slice(key.length + 1), value)}`
}

const partOf = ({ where, text }: ConfigProblem, config: unknown): InvalidPart => {
  const [, line] = /^script:(\d+)$/.exec(where) ?? []
  return line === undefined
    ? { pointer: `/config${pointerTo(where, config)}`, detail: text }
    : { pointer: '/script', detail: `line ${line}: ${text}` }
}

/** Throws the problem for an error of the creation of a world. */
export function refuseWorld(error: unknown, config: unknown): never {
  if (error instanceof ConfigError)
    throw invalidMembers(
      error.problems.map((one) => partOf(one, config)),
      error,
    )
  // The parts of the relay report a mistake in a parameter as an Error with a sentence; the system's errors have a syscall.
  if (error instanceof Error && !('syscall' in error)) throw invalidMembers([{ pointer: '/config', detail: error.message }], error)
  throw error
}

/** The problem for an error of a call of a world: an invalid argument is a TypeError, or a ConfigError. */
export function asProblem(error: unknown, pointer = ''): unknown {
  if (error instanceof ConfigError)
    return invalidMembers(
      error.problems.map(({ where, text }) => ({
        pointer: where === '' ? pointer : `/${escaped(where.split('.').at(-1) ?? '')}`,
        detail: text,
      })),
      error,
    )
  if (error instanceof TypeError) return invalidMembers([{ pointer, detail: error.message }], error)
  return error
}
