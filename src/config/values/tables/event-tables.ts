/** The `[events.NAME]` tables: which events are kept for a program, and where they are sent. */
import { EVENT_TYPES } from '../../../events/event-types.ts'
import { selectedTypes, type EventFilter } from '../../../events/event-filter.ts'
import type { Problem } from '../problem.ts'
import type { RawValue } from '../sources.ts'
import * as is from '../values.ts'

export const EVENT_FORMATS = ['deferd', 'cloudevents'] as const

/** Settings of a subscription, of a table and of a command. */
export interface SubscriptionTerms extends EventFilter {
  /** `https://…`, `http://…`, `file:/…` or `stdout`; empty for events that are only read through the admin API. */
  readonly to: string
  readonly format: (typeof EVENT_FORMATS)[number]
  /** Maximum number of events in one request. */
  readonly batch: number
  /** True to send to private addresses, and without TLS. */
  readonly allowPrivate: boolean
  /** In bytes. A larger file is rotated; 0 for no limit. */
  readonly size: number
  /** Number of rotated files to keep. */
  readonly keep: number
}

export interface EventsTable extends SubscriptionTerms {
  /** Signing keys as `whsec_` and base64, newest first. */
  readonly secrets: readonly string[]
  /** Position of the heading. */
  readonly where: string
}

/** Names of subscriptions, in tables and commands. */
export const SUBSCRIPTION_NAME = /^[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?$/i

/** Limit of events per request. */
export const MOST_PER_REQUEST = 1_000

const typePatterns = is.kind('a list of types or patterns such as "recipient.*"', (given) => {
  const reading = is.list(given)
  if (!('value' in reading)) return undefined
  return reading.value.every((pattern) => selectedTypes([pattern]).length > 0) ? reading.value : undefined
})

const MASK = '(not shown)'

interface TargetForm {
  /** True for a text of this form. */
  readonly has: (to: string) => boolean
  readonly isValid: (to: string, allowPrivate: boolean) => boolean
  /** The target without credentials. */
  readonly masked: (to: string) => string
}

const asItIs = (to: string): string => to

/** The forms of targets: `none` for events that are only read, `web` for each text that is not of another form. */
const TARGET_FORMS = {
  none: { has: (to) => to === '', isValid: () => true, masked: asItIs },
  stdout: { has: (to) => to === 'stdout', isValid: () => true, masked: asItIs },
  file: { has: (to) => to.startsWith('file:'), isValid: (to) => /^file:\/(?!.*\/$)./.test(to), masked: asItIs },
  web: {
    has: () => true,
    isValid: (to, allowPrivate) => {
      const url = URL.canParse(to) ? new URL(to) : undefined
      return url !== undefined && (url.protocol === 'https:' || (allowPrivate && url.protocol === 'http:')) && url.username === ''
    },
    masked: (to) => (URL.canParse(to) ? maskedUrl(new URL(to)) : MASK),
  },
} as const satisfies Readonly<Record<string, TargetForm>>

export type TargetKind = keyof typeof TARGET_FORMS

const TARGET_KINDS = Object.keys(TARGET_FORMS) as readonly TargetKind[]

export const targetKind = (to: string): TargetKind => TARGET_KINDS.find((kind) => TARGET_FORMS[kind].has(to)) ?? 'web'

export const isTarget = (to: string, allowPrivate: boolean): boolean => TARGET_FORMS[targetKind(to)].isValid(to, allowPrivate)

const maskedUrl = ({ protocol, host, pathname, search, hash }: URL): string =>
  `${protocol}//${host}/${`${pathname}${search}${hash}` === '/' ? '' : MASK}`

/**
 * A target without the path and query of its URL, which are the credential of some services. Roles below admin, records, and texts that
 * operators paste into reports get this form.
 */
export const maskedTarget = (to: string): string => TARGET_FORMS[targetKind(to)].masked(to)

/** Masks the secrets in a value of a table. */
export function shownValue(key: string, text: string): string {
  if (key === 'to') return maskedTarget(text)
  return key === 'secret' ? MASK : text
}

/** A secret of the Standard Webhooks specification: 24 to 64 bytes. */
export function isSigningSecret(text: string): boolean {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? []
  const { length } = Buffer.from(base64, 'base64')
  return length >= 24 && length <= 64
}

const secrets = is.kind('secrets', (given) => {
  const reading = is.list(given)
  return 'value' in reading && reading.value.every(isSigningSecret) ? reading.value : undefined
})

const KEYS = {
  to: { kind: is.text, byDefault: '' },
  types: { kind: typePatterns, byDefault: '*' },
  destinations: { kind: is.list, byDefault: '' },
  senders: { kind: is.list, byDefault: '' },
  secret: { kind: secrets, byDefault: '' },
  allow_private: { kind: is.flag, byDefault: 'no' },
  format: { kind: is.oneOf(...EVENT_FORMATS), byDefault: 'deferd' },
  batch: { kind: is.count(1, MOST_PER_REQUEST), byDefault: '1' },
  size: { kind: is.size, byDefault: '0' },
  keep: { kind: is.count(), byDefault: '5' },
} as const

type Key = keyof typeof KEYS
type ValueOf<K extends Key> = (typeof KEYS)[K]['kind'] extends is.Kind<infer T> ? T : never

const isKey = (name: string): name is Key => Object.hasOwn(KEYS, name)

/** Reads the table of a name. Adds the problems to `problems`. */
export function readEventsTable(name: string, raw: ReadonlyMap<string, RawValue>, problems: Problem[]): EventsTable {
  const first = [...raw.values()][0]?.where ?? ''
  const refuse = (where: string, text: string): void => void problems.push({ where, text: `events.${JSON.stringify(name)}: ${text}` })
  if (!SUBSCRIPTION_NAME.test(name))
    refuse(first, 'expected a name of letters, digits, dots, hyphens and underscores, such as [events.app]')
  for (const [key, { where }] of raw) if (!isKey(key)) refuse(where, `unknown key ${key}; a table has ${Object.keys(KEYS).join(', ')}`)
  const valueOf = <K extends Key>(key: K): ValueOf<K> => {
    const given = raw.get(key)
    const kind = KEYS[key].kind as is.Kind<ValueOf<K>>
    const reading = kind(given?.value ?? KEYS[key].byDefault)
    if ('value' in reading) return reading.value
    refuse(given?.where ?? first, `${key}: ${wrongIn(key, reading.wrong)}`)
    return fallback(key)
  }
  const [to, allowPrivate] = [valueOf('to'), valueOf('allow_private')]
  if (!isTarget(to, allowPrivate))
    refuse(
      raw.get('to')?.where ?? first,
      `to: expected https://…, file:/… or stdout, got "${maskedTarget(to)}"; http://… needs allow_private = true`,
    )
  return {
    to,
    allowPrivate,
    types: valueOf('types'),
    destinations: valueOf('destinations'),
    senders: valueOf('senders'),
    secrets: valueOf('secret'),
    format: valueOf('format'),
    batch: valueOf('batch'),
    size: valueOf('size'),
    keep: valueOf('keep'),
    where: first,
  }
}

function wrongIn(key: Key, wrong: string): string {
  if (key === 'types') return `${wrong}; the types are ${EVENT_TYPES.join(', ')}`
  // The default message would repeat the secret.
  return key === 'secret' ? 'expected a text such as "whsec_…" (base64 of 24 to 64 bytes), or a list of them' : wrong
}

function fallback<K extends Key>(key: K): ValueOf<K> {
  const reading = (KEYS[key].kind as is.Kind<ValueOf<K>>)(KEYS[key].byDefault)
  if ('value' in reading) return reading.value
  throw new Error(`the default of ${key} is not valid; this is a bug`)
}
