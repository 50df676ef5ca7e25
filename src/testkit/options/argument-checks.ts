/** Checks of the arguments of the test kit. A mistake throws a TypeError with the valid form, before the world changes. */
import { WORLD_STORES } from './world-stores.ts'
import { nearest } from '../../config/values/problem.ts'
import { EVENT_TYPES } from '../../events/event-types.ts'
import { selectedTypes } from '../../events/event-filter.ts'
import { OPERATIONS, type OperationName } from '../../queue/operation-request.ts'
import { shown } from '../../system/shown-value.ts'

/** Throws for a value that is no object with members. */
export function requireObject(what: string, value: unknown): void {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return
  throw new TypeError(`${what} expects an object, got ${shown(value)}`)
}

const suggestion = (name: string, known: readonly string[]): string => {
  const meant = nearest(name, known)
  return meant === undefined ? '.' : `; did you mean ${meant}?`
}

/** Throws for a member of `options` that is not among the known names. */
export function requireKnownOptions(of: string, options: object, known: readonly string[]): void {
  requireObject(of, options)
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown === undefined) return
  throw new TypeError(`${of} has no option ${shown(unknown)}${suggestion(unknown, known)} Known: ${known.join(', ')}.`)
}

/** Throws for an address, a URL or an empty text in place of a domain. */
export function requireDomain(of: string, domain: string): void {
  if (typeof domain === 'string' && /^[^\s@/]+$/.test(domain)) return
  const at = typeof domain === 'string' ? domain.lastIndexOf('@') : -1
  const hint = at < 0 ? '' : `; for all addresses of the domain write ${of}(${shown(domain.slice(at + 1))})`
  throw new TypeError(`${of} expects a domain such as "example.net", got ${shown(domain)}${hint}`)
}

/**
 * Throws for a value that matches no recipient of a domain: a reply (`rejects('550 …')`), a local part alone, an address of another
 * domain.
 */
export function requireRecipient(of: string, recipient: string, domain: string): void {
  if (typeof recipient !== 'string') throw new TypeError(`${of} expects a recipient first, got ${shown(recipient)}`)
  if (/^[2-5]\d\d(?:[ -]|$)/.test(recipient)) {
    throw new TypeError(
      `${of} expects a recipient first, got the reply ${shown(recipient)}; for all recipients write ${of}('*', ${shown(recipient)})`,
    )
  }
  if (`${recipient}${domain}`.includes('*')) return
  const at = recipient.lastIndexOf('@')
  const own = recipient.slice(at + 1).toLowerCase()
  if (at >= 0 && (own === domain || (domain.startsWith('.') && own.endsWith(domain)))) return
  const right = at < 0 ? `write ${of}(${shown(`${recipient}@${domain}`)})` : `write destination(${shown(own)}).${of}(${shown(recipient)})`
  throw new TypeError(`${of} expects a recipient of ${domain}, got ${shown(recipient)}; ${right}`)
}

/** Throws for a reply whose code does not begin with one of the digits. */
export function requireReply(of: string, reply: string, digits: readonly ('4' | '5')[]): void {
  if (typeof reply !== 'string') throw new TypeError(`${of} expects a reply such as "${digits[0]}50 text", got ${shown(reply)}`)
  if (digits.some((digit) => reply.startsWith(digit))) return
  const kind = digits.length > 1 ? 'a 4xx or 5xx' : `a ${digits.join('')}xx`
  const other = { '2': 'a success', '4': 'a temporary failure; use defers()', '5': 'a permanent failure; use rejects()' }[reply.charAt(0)]
  throw new TypeError(`${of} expects ${kind} reply, got ${shown(reply)}${other === undefined ? '' : `, which is ${other}`}`)
}

/** Throws for an unknown operation, and for ids that are not a list. */
export function requireOperation(operation: OperationName, ids: unknown): void {
  if (!OPERATIONS.includes(operation)) {
    const known = OPERATIONS.join(', ')
    throw new TypeError(`there is no operation ${shown(operation)}${suggestion(operation, OPERATIONS)} The operations are ${known}.`)
  }
  if (ids === 'all' || (Array.isArray(ids) && ids.every((id) => typeof id === 'string'))) return
  throw new TypeError(`operate(${shown(operation)}) expects a list of queue ids or 'all', got ${shown(ids)}`)
}

/** Throws for a value that is given and cannot be called. */
export function requireFunction(what: string, value: unknown): void {
  if (value === undefined || typeof value === 'function') return
  throw new TypeError(`${what} expects a function, got ${shown(value)}`)
}

/** Throws for a pattern that selects no type of event. */
export function requireEventTypes(of: string, types: readonly string[] = []): void {
  if (!Array.isArray(types)) throw new TypeError(`types of ${of} expects a list such as ['recipient.*'], got ${shown(types)}`)
  const unknown = types.find((type) => selectedTypes([String(type)]).length === 0)
  if (unknown !== undefined) throw new TypeError(`there is no type of event ${shown(unknown)}${suggestion(String(unknown), EVENT_TYPES)}`)
}

/** Throws for a seed that is not a whole number: with it, all seeds would give the same numbers. */
export function requireSeed(seed: unknown): void {
  if (!Number.isSafeInteger(seed)) throw new TypeError(`seed expects a whole number, got ${shown(seed)}`)
}

/** Throws for the name of a zone. */
export function requireZone(zone: unknown): void {
  if (typeof zone === 'function') return
  throw new TypeError(`zone expects a function such as () => ({ offset: 60, name: 'CET' }), got ${shown(zone)}`)
}

/** Throws for the name of a file in place of the text of a script. */
export function requireScriptText(script: string): void {
  if (typeof script === 'string' && !/^\s*\S+\.toml\s*$/.test(script)) return
  throw new TypeError(
    `script expects the text of a script, got ${shown(script)}; for a file write script: readFileSync(${shown(script)}, 'utf8')`,
  )
}

/** Throws for a value that is not a kind of store. */
export function requireStore(store: unknown): void {
  if (WORLD_STORES.some((name) => name === store)) return
  const isFolder = typeof store === 'object' && store !== null && 'directory' in store && typeof store.directory === 'string'
  if (isFolder && store.directory !== '') {
    requireKnownOptions('store', store, ['directory'])
    return
  }
  throw new TypeError(`store expects ${WORLD_STORES.map((name) => `'${name}'`).join(', ')} or { directory: '/path' }, got ${shown(store)}`)
}
