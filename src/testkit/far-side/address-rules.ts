/**
 * Addresses that say what they want: `550@…`, `first-2+451@…`, `greylist+5m@…`. A local part is read as a condition, a
 * stage and a deed, joined by `+`; the rule it makes is about that address alone. docs/sink.md has the table.
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

const DEEDS: Readonly<Record<string, RuleText>> = {
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

/** Greylisting and slowness want a time. */
const TIMED: readonly (readonly [string, (time: string) => RuleText])[] = [
  ['greylist', (time) => ({ greylist: time })],
  ['slow', (time) => ({ delay: time })],
]

/** The rules that an address asks for; none when it is an address like any other. */
export function addressRules(address: string): readonly Rule[] {
  const local = address.slice(0, address.lastIndexOf('@')).toLowerCase()
  const wish = readWish(local.split('+'))
  if (wish === undefined) return []
  const read = readRule(local, { at: 'rcpt', ...wish, recipient: address })
  return 'rule' in read ? [read.rule] : []
}

function readWish(words: readonly string[]): RuleText | undefined {
  let wish: RuleText = {}
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    const rest = words.slice(at + 1)
    const prefix = CONDITIONS.map(([pattern, read]) => ({ match: pattern.exec(word), read })).find(({ match }) => match !== null)
    if (prefix !== undefined) wish = { ...wish, ...prefix.read(prefix.match?.[1] ?? '') }
    else if (STAGES[word] !== undefined) wish = { ...wish, ...STAGES[word] }
    else {
      const deed = readDeed(word, rest)
      return deed === undefined ? undefined : { ...wish, ...deed }
    }
  }
  return undefined
}

/** The last part: what is done. A reply takes all that follows for its text. */
function readDeed(word: string, rest: readonly string[]): RuleText | undefined {
  if (/^[245]\d\d$/.test(word))
    return { reply: [word, ...(rest.length > 0 ? rest : [`${word.charAt(0)}.0.0`, 'as', 'you', 'wish'])].join(' ') }
  const timed = TIMED.find(([name]) => name === word)
  if (timed !== undefined) return rest.length === 1 ? timed[1](rest[0] ?? '') : undefined
  return rest.length === 0 ? DEEDS[word] : undefined
}
