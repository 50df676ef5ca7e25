/**
 * Checks values of requests against their shapes. An error names the member, what was expected and what was received, in the words of the
 * errors about the configuration: `/limit: expected a whole number, got "many"`.
 */
import type { z } from 'zod'
import { shown } from '../system/shown-value.ts'
import { clipped, plural } from './text.ts'

export interface InvalidMember {
  readonly kind: 'unknown' | 'missing' | 'invalid'
  readonly path: readonly PropertyKey[]
  /** Sentence without the path. */
  readonly detail: string
}

type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly invalid: readonly InvalidMember[] }

export function checkValue<T>(shape: z.ZodType<T>, value: unknown): Checked<T> {
  const parsed = shape.safeParse(value, { error: expectation })
  return parsed.success ? { ok: true, value: parsed.data } : { ok: false, invalid: invalidMembers(parsed.error.issues, [], value) }
}

type Issue = z.core.$ZodIssue

const invalidMembers = (issues: readonly Issue[], above: readonly PropertyKey[], value: unknown): readonly InvalidMember[] =>
  issues.flatMap((issue): readonly InvalidMember[] => {
    const path = [...above, ...issue.path]
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({ kind: 'unknown', path: [...path, key], detail: issue.message }))
    if (issue.code === 'invalid_union' && issue.errors.length > 0) return alternatives(issue.errors, path, value)
    if (issue.code === 'invalid_key') {
      const detail = `the name of a member is invalid: ${issue.issues[0]?.message ?? 'expected another one'}`
      return [{ kind: 'invalid', path, detail }]
    }
    return [withReceived(issue.message, path, value)]
  })

/** Completes the sentence with what was received. */
function withReceived(expected: string, path: readonly PropertyKey[], value: unknown): InvalidMember {
  const received = memberAt(value, path)
  if (received === undefined) return { kind: 'missing', path, detail: `missing, ${expected}` }
  return { kind: 'invalid', path, detail: SECRET_MEMBERS.has(path.at(-1) ?? '') ? expected : `${expected}, got ${receivedText(received)}` }
}

/** The errors of the alternative that the value was probably meant for. */
function alternatives(all: readonly Issue[][], path: readonly PropertyKey[], value: unknown): readonly InvalidMember[] {
  const [meant = []] = all.toSorted((a, b) => unlikeness(a) - unlikeness(b))
  if (!isOfOtherKind(meant)) return invalidMembers(meant, path, value)
  const expected = all.filter(isOfOtherKind).map(([issue]) => issue?.message.replace(/^expected /, '') ?? '')
  return [withReceived(`expected ${anyOf([...new Set(expected)])}`, path, value)]
}

/** True when the value as a whole, not a member, is of another kind. */
const isOfOtherKind = ([issue]: readonly Issue[]): boolean => issue?.code === 'invalid_type' && issue.path.length === 0

/** Orders alternatives: those of the right kind first, and among them the one that knows the most members. */
const unlikeness = (issues: readonly Issue[]): number =>
  issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 0), isOfOtherKind(issues) ? Infinity : 0)

function memberAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
    at = (at as Record<PropertyKey, unknown>)[name]
  }
  return at
}

/** An error does not repeat these members. */
const SECRET_MEMBERS: ReadonlySet<PropertyKey> = new Set(['code', 'hash', 'secret'])

/** Limit of a value that an error repeats. */
const LONGEST_QUOTED = 100

function receivedText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`
  return typeof value === 'object' && value !== null ? 'an object' : clipped(shown(value), LONGEST_QUOTED)
}

const anyOf = (words: readonly string[]): string => [words.slice(0, -1).join(', '), ...words.slice(-1)].filter(Boolean).join(' or ')

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'an array',
}

/** The expectation, for a check without a sentence of its own. */
function expectation(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${KINDS[issue.expected] ?? issue.expected}`
    case 'too_small':
      return `expected ${sized(issue.inclusive === false ? 'more than' : 'at least', issue.minimum, issue.origin)}`
    case 'too_big':
      return `expected ${sized(issue.inclusive === false ? 'less than' : 'at most', issue.maximum, issue.origin)}`
    case 'invalid_value':
      return `expected ${anyOf(issue.values.map(shown))}`
    case 'invalid_format':
      return `expected ${issue.pattern === undefined ? issue.format : `a text that matches ${issue.pattern}`}`
    case 'invalid_union':
      return `expected ${anyOf(((issue.options ?? []) as readonly unknown[]).map(shown))}`
    case 'unrecognized_keys':
      return `unknown member; known: ${membersOf(issue.inst).join(', ')}`
    case 'not_multiple_of':
      return `expected a multiple of ${issue.divisor}`
    case 'custom':
    case 'invalid_key':
    case 'invalid_element':
      return 'expected another value'
  }
}

const UNITS: Readonly<Record<string, string>> = { string: 'character', array: 'item' }

const sized = (relation: string, limit: number | bigint, origin: string): string =>
  `${relation} ${UNITS[origin] === undefined ? limit : plural(Number(limit), UNITS[origin])}`

const membersOf = (shape: unknown): readonly string[] => Object.keys((shape as z.ZodObject | undefined)?.def.shape ?? {})
