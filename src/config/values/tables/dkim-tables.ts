/** The `[dkim."…"]` tables: keys that sign the mail of a domain. A key is `selector:path`, or `selector?:path` before it signs. */
import type { Duration } from '../../../system/clock.ts'
import type { Problem } from '../problem.ts'
import type { RawValue } from '../sources.ts'
import * as is from '../values.ts'

export interface DkimKeyName {
  readonly selector: string
  readonly path: string
  /** True for a key that is published but does not sign yet: `selector?:path`. */
  readonly staged: boolean
}

export interface DkimTable {
  readonly keys: readonly DkimKeyName[]
  /** Validity of a signature (`x=`); 0 for no end. */
  readonly expire: Duration
  /** Position of `keys`. */
  readonly where: string
}

const LABEL = /^[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?$/i
export const isDomain = (text: string): boolean => text.length <= 253 && text.split('.').every((label) => LABEL.test(label))

const keyNames = is.kind('a list of texts such as "s2026:/etc/deferd/dkim/example.com.s2026.pem"', (given) => {
  const reading = is.lines(given)
  if (!('value' in reading) || reading.value.length === 0) return undefined
  const names = reading.value.map(keyName)
  return names.every((name) => name !== undefined) ? names : undefined
})

function keyName(text: string): DkimKeyName | undefined {
  const [, selector = '', mark = '', path = ''] = /^([^:?]+)(\??):(.+)$/.exec(text.trim()) ?? []
  return isDomain(selector) ? { selector: selector.toLowerCase(), path: path.trim(), staged: mark === '?' } : undefined
}

/** The table of a heading such as `example.com` or `.example.com`. Adds its problems to `problems`. */
export function readDkimTable(heading: string, raw: ReadonlyMap<string, RawValue>, lifetime: Duration, problems: Problem[]): DkimTable {
  const shown = `dkim."${heading}"`
  const first = [...raw.values()][0]?.where ?? ''
  const refuse = (where: string, text: string): void => void problems.push({ where, text: `${shown}: ${text}` })
  if (!isDomain(heading.replace(/^\./, ''))) refuse(first, 'expected a domain in ASCII form, such as [dkim."example.com"]')
  for (const [name, { where }] of raw)
    if (name !== 'keys' && name !== 'expire') refuse(where, `unknown key ${name}; a table has keys and expire`)
  const { keys: givenKeys, expire: givenExpire } = Object.fromEntries(raw)
  const where = givenKeys?.where ?? first
  const keys = keyNames(givenKeys?.value ?? '')
  const expire = is.duration(givenExpire?.value ?? '0')
  if ('wrong' in keys) refuse(where, givenKeys === undefined ? 'keys is missing' : `keys: ${keys.wrong}`)
  else if (new Set(keys.value.map(({ selector }) => selector)).size < keys.value.length) refuse(where, 'keys: two keys have one selector')
  if ('wrong' in expire) refuse(givenExpire?.where ?? first, `expire: ${expire.wrong}`)
  else if (expire.value > 0 && expire.value < lifetime) {
    refuse(givenExpire?.where ?? first, 'expire: shorter than maximal_queue_lifetime, so that signatures would end while mail is queued')
  }
  return { keys: 'value' in keys ? keys.value : [], expire: 'value' in expire ? expire.value : 0, where }
}
