/**
 * Reads one rule from a TOML table or from code. Every mistake is reported with the valid values. The name of a rule has no
 * effect; events and error messages show it.
 */
import { nearest } from '../../config/values/problem.ts'
import * as is from '../../config/values/values.ts'
import { HOUR } from '../../system/clock.ts'
import { KEYS, usesOf, type KeyName, type ReadKeys, type RuleText } from './rule-keys.ts'
import { STAGES, type Fault, type FaultStage, type ReplyAction, type Rule, type ReplyText, type When, type Where } from './rule.ts'

export interface Mistake {
  /** Key that has the mistake; null for a mistake in the rule as a whole. */
  readonly key: string | null
  readonly text: string
}

type ReadRule = { readonly rule: Rule } | { readonly mistakes: readonly Mistake[] }

const NAMES = Object.keys(KEYS) as KeyName[]
const CONDITIONS = NAMES.filter((name) => usesOf(name).refusal !== undefined)
/** Keys of which a rule needs at least one, because it would have no effect otherwise. */
const ACTIONS = [...NAMES.filter((name) => usesOf(name).acts), ...CONDITIONS]

/** Stage that a key implies when `at` is absent; undefined for none. */
function impliedBy(name: KeyName): FaultStage | undefined {
  const { at: [one, ...others] = [] }: { readonly at?: readonly FaultStage[] | undefined } = KEYS[name]
  return usesOf(name).implies ?? (others.length === 0 ? one : undefined)
}

const GREYLIST_WINDOW = 4 * HOUR

/** Reads a rule. Returns the rule or its mistakes: those of its keys or, if all keys are valid, those of their combination. */
export function readRule(name: string, text: RuleText | Readonly<Record<string, unknown>>): ReadRule {
  const written: Readonly<Record<string, unknown>> = { ...text }
  const mistakes: Mistake[] = []
  const keys = readKeys(written, mistakes)
  // Combinations of keys are checked only if every key is valid.
  if (mistakes.length > 0) return { mistakes }
  const implied = NAMES.filter((key) => keys[key] !== undefined).map(impliedBy)
  const at = keys.at ?? STAGES.find((stage) => implied.includes(stage))
  if (at === undefined) return { mistakes: [{ key: null, text: `has no stage: add at = one of ${STAGES.join(', ')}` }] }
  mistakes.push(...misplaced(keys, at), ...contradictions(keys))
  const after = readAfter(keys, at, mistakes)
  if (mistakes.length > 0) return { mistakes }
  const facts = { where: whereOf(keys), when: whenOf(keys), fault: faultOf(keys, at, after), early: keys.early ?? false }
  return { rule: { name, written, ...facts } }
}

function readKeys(written: object, mistakes: Mistake[]): ReadKeys {
  const keys: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(written) as [string, unknown][]) {
    if (value === undefined) continue
    const known = NAMES.find((name) => name === key)
    if (known === undefined) {
      const meant = nearest(key, NAMES)
      mistakes.push({ key, text: `unknown key ${key}${meant === undefined ? '' : `; did you mean ${meant}?`}` })
      continue
    }
    const reading = KEYS[known].kind(value)
    if ('value' in reading) keys[key] = reading.value
    else mistakes.push({ key, text: `${key}: ${reading.wrong}` })
  }
  return keys
}

function* misplaced(keys: ReadKeys, at: FaultStage): Generator<Mistake> {
  for (const name of NAMES) {
    const { at: places }: { readonly at?: readonly FaultStage[] | undefined } = KEYS[name]
    if (keys[name] === undefined || places === undefined || places.includes(at)) continue
    yield { key: name, text: `${name} is not valid at ${at}, only at ${places.join(', ')}` }
  }
}

function* contradictions(keys: ReadKeys): Generator<Mistake> {
  const given = (key: KeyName) => keys[key] !== undefined
  const [condition, second] = CONDITIONS.filter(given)
  if (second !== undefined) yield { key: second, text: `${second} cannot be combined with ${condition}` }
  for (const name of NAMES.filter(given)) {
    const { needs = [], excludes = [] } = usesOf(name)
    for (const other of excludes.filter(given)) yield { key: name, text: `${name} cannot be combined with ${other}` }
    if (needs.length > 0 && !needs.some(given)) yield { key: name, text: `${name} needs ${needs.join(' or ')}` }
  }
  if (keys.from !== undefined && keys.until !== undefined && keys.until <= keys.from) {
    yield { key: 'until', text: 'until must be later than from' }
  }
  if (!ACTIONS.some(given)) yield { key: null, text: `has no effect: add one of ${ACTIONS.join(', ')}` }
}

/** Reads `after`: a number of bytes at the stage `body`, milliseconds at `idle`. */
function readAfter({ after = '0' }: ReadKeys, at: FaultStage, mistakes: Mistake[]): number {
  if (at !== 'body' && at !== 'idle') return 0
  const reading = at === 'body' ? is.size(after) : is.duration(after)
  if ('value' in reading) return reading.value
  mistakes.push({ key: 'after', text: `after: ${reading.wrong}` })
  return 0
}

const whereOf = (keys: ReadKeys): Where => ({
  domain: keys.domain,
  mx: keys.mx,
  recipient: keys.recipient,
  sender: keys.sender,
  helo: keys.helo,
  client: keys.client,
  sizeOver: keys.size_over,
  sizeUnder: keys.size_under,
  header: keys.header,
})

const whenOf = (keys: ReadKeys): When => ({
  per: keys.per ?? 'rule',
  first: keys.first,
  nth: keys.nth,
  every: keys.every,
  probability: keys.probability,
  from: keys.from,
  until: keys.until,
  flapping: keys.flapping,
  greylist: keys.greylist === undefined ? undefined : { delay: keys.greylist, window: keys.greylist_window ?? GREYLIST_WINDOW },
  connectionsOver: keys.connections_over,
  rate: keys.rate === undefined ? undefined : { ...keys.rate, penalty: keys.penalty ?? 0 },
  quota: keys.quota,
  recipientsOver: keys.recipients_over,
})

function faultOf(keys: ReadKeys, at: FaultStage, after: number): Fault {
  const delay = keys.delay ?? 0
  // Before the session, a rule with a condition and without an action makes the lookup or the connection fail.
  const byDefault = CONDITIONS.some((name) => keys[name] !== undefined) && keys.delay === undefined
  switch (at) {
    case 'dns':
      return { at, dns: keys.dns ?? (byDefault ? 'servfail' : 'slow'), delay }
    case 'connect':
      return { at, connect: keys.connect ?? (byDefault ? 'refused' : 'slow'), delay }
    case 'ehlo':
      return { at, action: actionOf(keys), extensions: keys.extensions }
    case 'body':
      return { at, action: actionOf(keys), after, readRate: keys.read_rate }
    case 'idle':
      return { at, action: actionOf(keys), after }
    case 'end-of-data':
      return { at, action: actionOf(keys), keep: keys.keep ?? !refuses(keys.reply) }
    case 'greeting':
    case 'helo':
    case 'starttls':
    case 'handshake':
    case 'auth':
    case 'mail':
    case 'rcpt':
    case 'data':
    case 'rset':
    case 'quit':
      return { at, action: actionOf(keys) }
  }
}

const refuses = (reply: readonly string[] | undefined): boolean => reply !== undefined && !reply[0]?.startsWith('2')

function textOf(keys: ReadKeys): ReplyText {
  if (keys.reply !== undefined) return { kind: 'reply', lines: keys.reply }
  if (keys.raw !== undefined) return { kind: 'raw', bytes: keys.raw }
  // `drop` and `stall` send no reply, unless `cut` requests a part of the default one.
  if (keys.stall === true || (keys.drop !== undefined && keys.cut === undefined)) return { kind: 'nothing' }
  const condition = CONDITIONS.find((name) => keys[name] !== undefined)
  const acts = NAMES.some((name) => keys[name] !== undefined && usesOf(name).acts)
  const refusal = condition === undefined ? undefined : usesOf(condition).refusal
  return refusal === undefined || acts ? { kind: 'usual' } : { kind: 'reply', lines: [refusal] }
}

function actionOf(keys: ReadKeys): ReplyAction {
  const text = textOf(keys)
  const closes = keys.cut !== undefined || (text.kind === 'reply' && text.lines[0]?.startsWith('421') === true)
  return {
    text,
    delay: keys.delay ?? 0,
    drip: keys.drip,
    split: keys.split === undefined ? undefined : { at: keys.split, gap: keys.gap ?? 0 },
    repeat: keys.repeat ?? 1,
    cut: keys.cut,
    ending: keys.stall === true ? 'stall' : (keys.drop ?? (closes ? 'fin' : 'continue')),
  }
}
