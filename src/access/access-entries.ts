/** Access entries of commands: in the queue, and in memory for the sessions. They come before the lists of the configuration. */
import { normalizeAddress } from '../mail/address.ts'
import type { AccessEntry, AccessSubject } from '../store/records/access-entry.ts'
import type { Actor } from '../store/records/audit-log.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { Clock, Duration } from '../system/clock.ts'
import { formatDuration } from '../system/duration.ts'
import { shellWord } from '../system/shell-word.ts'
import { parseAccessAction, type AccessAction } from './access-action.ts'
import type { LookupForm } from '../rewriting/address-keys.ts'

export interface AccessRequestedEntry extends Actor {
  readonly subject: AccessSubject
  readonly key: string
  readonly action: string
  /** Time after which the entry has no effect; null for never. */
  readonly duration: Duration | null
}

interface AccessEntriesDeps {
  readonly store: Pick<QueueStore, 'records'>
  readonly reader: Pick<QueueReader, 'records'>
  readonly clock: Clock
}

/** Returns a key in the form in which it is kept. Throws an Error that quotes a key that no session could have. */
export function accessKey(subject: AccessSubject, key: string): string {
  if (/^[\d.:a-f]+\/\d+$/i.test(key))
    throw new Error(`${JSON.stringify(key)} is a network with a length; write its octets or groups, such as 192.0.2 or 2001:db8`)
  if (subject === 'client' && /^[\d.]+$/.test(key) && !OCTETS.test(key))
    throw new Error(`${JSON.stringify(key)} is neither an IPv4 address nor its first octets; write ${FORMS.client}`)
  const isAddress = subject !== 'client'
  const unquoted = isAddress ? key.replace(/^"(?:[^"\\]|\\.)*"(?=@)/, 'user') : key
  if (key === '' || /[\s/]/.test(unquoted)) throw new Error(`${JSON.stringify(key)} is no key; write ${FORMS[subject]}`)
  return (isAddress ? normalizeAddress(key) : key).toLowerCase()
}

/** An IPv4 address, or its first octets. */
const OCTETS = /^(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){0,3}$/

const FORMS: Readonly<Record<AccessSubject, string>> = {
  client: 'an address (192.0.2.7), a network (192.0.2) or a host or domain name',
  sender: 'an address (ann@example.com), a domain, a user (ann@) or <>',
  recipient: 'an address (ann@example.com), a domain or a user (ann@)',
}

export class AccessEntries {
  readonly #deps: AccessEntriesDeps
  #entries: ReadonlyMap<string, AccessEntry> = new Map()

  constructor(deps: AccessEntriesDeps) {
    this.#deps = deps
  }

  /** Reads the entries, which other nodes or commands may have changed. */
  async load(): Promise<void> {
    const entries = await this.#deps.reader.records.access.all()
    this.#entries = new Map(entries.map((entry) => [idOf(entry), entry]))
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0
  }

  /** The action for the most specific form that has an entry; undefined without one. */
  find(subject: AccessSubject, forms: readonly LookupForm[]): AccessAction | undefined {
    const now = this.#deps.clock.now()
    for (const { key } of forms) {
      const entry = this.#entries.get(idOf({ subject, key: key.toLowerCase() }))
      if (entry !== undefined && (entry.expiresAt === null || entry.expiresAt > now)) return parseAccessAction(entry.action)
    }
    return undefined
  }

  /** Adds an entry in place of the one with the same subject and key. Throws an Error for a malformed key or action. */
  async add({ subject, key: given, action, duration, ...actor }: AccessRequestedEntry): Promise<void> {
    const { store, clock } = this.#deps
    const key = accessKey(subject, given)
    parseAccessAction(action)
    const now = clock.now()
    await store.records.access.set({
      subject,
      key,
      action,
      addedAt: now,
      addedBy: actor.who,
      expiresAt: duration === null ? null : now + duration,
    })
    await this.#removeStored({ subject, key }, (stored) => stored !== key)
    const limit = duration === null ? [] : [`--for=${formatDuration(duration)}`]
    const words = [subject, key, action, ...limit].map(shellWord).join(' ')
    await store.records.audit.add({ at: now, ...actor, action: 'access-add', arguments: words, changed: 1 })
    await this.load()
  }

  /** Removes an entry. Returns false when there is none. */
  async remove(subject: AccessSubject, given: string, actor: Actor): Promise<boolean> {
    const { store, clock } = this.#deps
    const key = accessKey(subject, given)
    const isRemoved = await this.#removeStored({ subject, key }, () => true)
    const words = [subject, key].map(shellWord).join(' ')
    if (isRemoved) await store.records.audit.add({ at: clock.now(), ...actor, action: 'access-remove', arguments: words, changed: 1 })
    await this.load()
    return isRemoved
  }

  /** Removes the entries of a key. Those of earlier versions may be stored with needless quotes. */
  async #removeStored(about: Pick<AccessEntry, 'subject' | 'key'>, mayGo: (stored: string) => boolean): Promise<boolean> {
    const { store, reader } = this.#deps
    const [id, entries] = [idOf(about), await reader.records.access.all()]
    let isRemoved = false
    for (const entry of entries) {
      if (idOf(entry) === id && mayGo(entry.key) && (await store.records.access.remove(entry.subject, entry.key))) isRemoved = true
    }
    return isRemoved
  }
}

const idOf = ({ subject, key }: Pick<AccessEntry, 'subject' | 'key'>): string => `${subject} ${normalizeAddress(key)}`
