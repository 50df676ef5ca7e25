/**
 * Addresses that request a fault: `550@…`, `first-2+451@…`, `greylist+5m@…`. The local part consists of conditions, a stage and
 * an action, joined by `+`. The resulting rule applies only to that address. docs/sink.md contains a table.
 */
import type { RuleText } from './rule-keys.ts'
import { readRule } from './rule-reader.ts'
import type { Rule } from './rule.ts'

const CONDITIONS: readonly (readonly [RegExp, (value: string) => RuleText])[] = [
  [/^first-(\d+)$/, (n) => ({ first: Number(n), per: 'triplet' })],
  [/^nth-(\d+)$/, (n) => ({ nth: Number(n), per: 'triplet' })],
  [/^every-(\d+)$/, (n) => ({ every: Number(n), per: 'triplet' })],
  [/^chance-(\d+)$/, (percent) => ({ probability: `${percent}%` })],
  [/^until-(.+)$/, (time) => ({ until: time })],
  [/^from-(.+)$/, (time) => ({ from: time })],
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
