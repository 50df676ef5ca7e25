/**
 * Addresses that request a fault: `550@…`, `first-2+451@…`, `greylist+5m@…`. The local part consists of conditions, a stage and
 * an action, joined by `+`. The resulting rule applies only to that address. docs/sink.md contains a table.
 */
import { distance } from '../../config/values/problem.ts'
import type { RuleText } from './rule-keys.ts'
import { readRule } from './rule-reader.ts'
import type { Rule } from './rule.ts'

const CONDITIONS: readonly (readonly [RegExp, (value: string) => RuleText])[] = [
  [/^first-(\d+)$/, (n) => ({ first: Number(n), per: 'triplet' })],
  [/^nth-(\d+)$/, (n) => ({ nth: Number(n), per: 'triplet' })],
  [/^every-(\d+)$/, (n) => ({ every: Number(n), per: 'triplet' })],
  [/^chance-(\d+)$/, (percent) => ({ probability: `${percent}%` })],
  [/^until-(\d.*)$/, (time) => ({ until: time })],
  [/^from-(\d.*)$/, (time) => ({ from: time })],
]

const STAGES: Readonly<Record<string, RuleText>> = {
  'at-data': { at: 'data' },
  'in-body': { at: 'body' },
  'after-dot': { at: 'end-of-data' },
}

const ACTIONS: Readonly<Record<string, RuleText>> = {
  drop: { drop: 'fin' },
  reset: { drop: 'rst' },
  stall: { stall: true },
  garbage: { raw: '\u0000\u00ff not a reply \u0007\r\n' },
  full: { reply: '452 4.2.2 Mailbox full' },
  'drop-at-data': { at: 'data', drop: 'fin' },
  'drop-in-body': { at: 'body', drop: 'rst' },
  'drop-after-dot': { at: 'end-of-data', drop: 'fin' },
  'reset-after-dot': { at: 'end-of-data', drop: 'rst' },
  'stall-after-dot': { at: 'end-of-data', stall: true },
  'lose-after-dot': { at: 'end-of-data', keep: false },
  duplicate: { repeat: 2 },
  drip: { drip: '1s' },
}

/** Actions that take a time. */
const TIMED: readonly (readonly [string, (time: string) => RuleText])[] = [
  ['greylist', (time) => ({ greylist: time })],
  ['slow', (time) => ({ delay: time })],
]

/** Beginnings of conditions. */
const BEGINNINGS = ['first', 'nth', 'every', 'chance', 'until', 'from'] as const

/** The word of an address that looks like a mistyped fault. */
interface MistypedFault {
  readonly word: string
  /** The most similar word; null for a word that is none of a fault in its place, such as `greylist` without a time. */
  readonly meant: string | null
}

/** Returns the mistyped fault of an address that requests none. Null for an address that requests a fault, and for ordinary addresses. */
export function mistypedFault(address: string): MistypedFault | null {
  if (addressRules(address).length > 0) return null
  const local = address.slice(0, address.lastIndexOf('@')).toLowerCase()
  const words = local.split('+')
  const at = words.findIndex(
    (word) => !isKnown(word) && !Object.hasOwn(STAGES, word) && !CONDITIONS.some(([pattern]) => pattern.test(word)),
  )
  const word = words[at]
  // Each word is one of a fault, but the whole is not.
  if (word === undefined || (at > 0 && isKnown(words[at - 1] ?? ''))) return { word: local, meant: null }
  if (/^\d{3}$/.test(word)) return { word, meant: null }
  const [, beginning = '', rest = ''] = /^([a-z]+)(-\d\w*)$/.exec(word) ?? []
  const condition = similar(beginning, BEGINNINGS)
  if (condition !== null && words.length > at + 1) return { word, meant: `${condition}${rest}` }
  const hasTime = words.length > at + 1
  const meant = similar(word, [...Object.keys(ACTIONS), ...Object.keys(STAGES), ...(hasTime ? TIMED.map(([name]) => name) : [])])
  return meant === null ? null : { word, meant }
}

const isKnown = (word: string): boolean => Object.hasOwn(ACTIONS, word) || TIMED.some(([name]) => name === word) || /^[245]\d\d$/.test(word)

/** The known word from which one letter of at least four differs, two of at least six, or the order of two neighbours. */
function similar(word: string, known: readonly string[]): string | null {
  const most = word.length >= 6 ? 2 : word.length >= 4 ? 1 : 0
  return known.find((one) => most > 0 && (distance(word, one) <= most || isSwapped(word, one))) ?? null
}

const isSwapped = (word: string, other: string): boolean =>
  word.split('').some((letter, at) => `${word.slice(0, at)}${word.charAt(at + 1)}${letter}${word.slice(at + 2)}` === other)

/** Rules that an address requests; empty for an ordinary address. */
export function addressRules(address: string): readonly Rule[] {
  const local = address.slice(0, address.lastIndexOf('@')).toLowerCase()
  const request = readRequest(local.split('+'))
  if (request === undefined) return []
  const read = readRule(local, { at: 'rcpt', ...request, recipient: address })
  return 'rule' in read ? [read.rule] : []
}

function readRequest(words: readonly string[]): RuleText | undefined {
  let request: RuleText = {}
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    const rest = words.slice(at + 1)
    const prefix = CONDITIONS.map(([pattern, read]) => ({ match: pattern.exec(word), read })).find(({ match }) => match !== null)
    if (prefix !== undefined) request = { ...request, ...prefix.read(prefix.match?.[1] ?? '') }
    else if (STAGES[word] !== undefined) request = { ...request, ...STAGES[word] }
    else {
      const action = readAction(word, rest)
      return action === undefined ? undefined : { ...request, ...action }
    }
  }
  return undefined
}

/** Reads the action, which is the last part. After a reply code, the remaining text is the reply's text. */
function readAction(word: string, rest: readonly string[]): RuleText | undefined {
  if (/^[245]\d\d$/.test(word))
    return { reply: [word, ...(rest.length > 0 ? rest : [`${word.charAt(0)}.0.0`, 'as', 'you', 'wish'])].join(' ') }
  const timed = TIMED.find(([name]) => name === word)
  if (timed !== undefined) return rest.length === 1 ? timed[1](rest[0] ?? '') : undefined
  return rest.length === 0 ? ACTIONS[word] : undefined
}
