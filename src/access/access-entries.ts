/** Access entries of commands: in the queue, and in memory for the sessions. They come before the lists of the configuration. */
import type { AccessEntry, AccessEntryReader, AccessEntryStore, AccessSubject } from '../store/access-entry.ts'
import type { AuditLog } from '../store/audit-log.ts'
import type { Clock, Duration } from '../system/clock.ts'
import { formatDuration } from '../system/duration.ts'
import { parseAccessAction, type AccessAction } from './access-action.ts'
import type { LookupForm } from './lookup-forms.ts'

/** An operator's request to add an entry. */
export interface AccessRequestedEntry {
  readonly subject: AccessSubject
  readonly key: string
  readonly action: string
  /** Time after which the entry has no effect; null for never. */
  readonly duration: Duration | null
  readonly who: string
}

export interface AccessEntriesDeps {
  readonly store: AccessEntryStore & Pick<AuditLog, 'audit'>
  readonly reader: AccessEntryReader
  readonly clock: Clock
}

/** Returns a key in the form in which it is kept. Throws an Error that quotes a key that no session could have. */
export function accessKey(subject: AccessSubject, key: string): string {
  if (/^[\d.:a-f]+\/\d+$/i.test(key))
    throw new Error(`${JSON.stringify(key)} is a network with a length; write its octets or groups, such as 192.0.2 or 2001:db8`)
  if (key === '' || /[\s/]/.test(key)) throw new Error(`${JSON.stringify(key)} is no key; write ${FORMS[subject]}`)
  return key.toLowerCase()
}

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
    const entries = await this.#deps.reader.accessEntries()
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
  async add({ subject, key: given, action, duration, who }: AccessRequestedEntry): Promise<void> {
    const { store, clock } = this.#deps
    const key = accessKey(subject, given)
    parseAccessAction(action)
    const now = clock.now()
    await store.setAccess({ subject, key, action, addedAt: now, addedBy: who, expiresAt: duration === null ? null : now + duration })
    const limit = duration === null ? '' : ` --for=${formatDuration(duration)}`
    await store.audit({ at: now, who, action: 'access-add', arguments: `${subject} ${key} ${action}${limit}`, changed: 1 })
    await this.load()
  }

  /** Removes an entry. Returns false when there is none. */
  async remove(subject: AccessSubject, given: string, who: string): Promise<boolean> {
    const { store, clock } = this.#deps
    const key = accessKey(subject, given)
    const isRemoved = await store.removeAccess(subject, key)
    if (isRemoved) await store.audit({ at: clock.now(), who, action: 'access-remove', arguments: `${subject} ${key}`, changed: 1 })
    await this.load()
    return isRemoved
  }
}

const idOf = ({ subject, key }: Pick<AccessEntry, 'subject' | 'key'>): string => `${subject} ${key}`
