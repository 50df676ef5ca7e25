/** Checks of the arguments of the test kit. A mistake throws a TypeError with the valid form, before the world changes. */
import { nearest } from '../config/values/problem.ts'
import { OPERATIONS, type OperationName } from '../queue/operation-request.ts'

const shown = (value: unknown): string => JSON.stringify(value) ?? String(value)

const suggestion = (name: string, known: readonly string[]): string => {
  const meant = nearest(name, known)
  return meant === undefined ? '.' : `; did you mean ${meant}?`
}

/** Throws for a member of `options` that is not among the known names. */
export function requireKnownOptions(of: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown === undefined) return
  throw new TypeError(`${of} has no option ${shown(unknown)}${suggestion(unknown, known)} Known: ${known.join(', ')}.`)
}

/** Throws for an address, a URL or an empty text in place of a domain. */
export function requireDomain(of: string, domain: string): void {
  if (/^[^\s@/]+$/.test(domain)) return
  const host = domain.slice(domain.lastIndexOf('@') + 1)
  const hint = domain.includes('@') ? `; for all addresses of the domain write ${of}(${shown(host)})` : ''
  throw new TypeError(`${of} expects a domain such as "example.net", got ${shown(domain)}${hint}`)
}

/** Throws for a reply in place of a recipient: `rejects('550 …')`. */
export function requireRecipient(of: string, recipient: string): void {
  if (!/^[2-5]\d\d(?:[ -]|$)/.test(recipient)) return
  throw new TypeError(
    `${of} expects a recipient first, got the reply ${shown(recipient)}; for all recipients write ${of}('*', ${shown(recipient)})`,
  )
}

/** Throws for a reply whose code does not begin with one of the digits. */
export function requireReply(of: string, reply: string, digits: readonly ('4' | '5')[]): void {
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

/** Throws for a value that is none of the kinds of store. */
export function requireStore(store: unknown): void {
  if (store === 'memory' || store === 'sqlite') return
  const isFolder = typeof store === 'object' && store !== null && 'directory' in store && typeof store.directory === 'string'
  if (isFolder && store.directory !== '') {
    requireKnownOptions('store', store, ['directory'])
    return
  }
  throw new TypeError(`store expects 'memory', 'sqlite' or { directory: '/path' }, got ${shown(store)}`)
}
