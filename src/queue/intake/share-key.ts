/** The share of the queue to which a message counts (share_key), and its keys in quotas. Pure. */
import type { Config } from '../../config/options.ts'
import { Clients, fieldOfKey, type SharePart } from '../../config/values/limit-terms.ts'
import type { QuotaKey } from '../../config/values/tables/quota-table.ts'
import { domainOf } from '../../mail/address.ts'

/** Origin of a message. */
export interface Origin {
  readonly sender: string
  /** User of the client's login, or `token:NAME`. */
  readonly user: string | undefined
  /** Address of the client; null for mail of this machine. */
  readonly address: string | null
  /** Class of the message; absent until it is known, and without classes. */
  readonly class?: string | undefined
  /** Values of header fields that are keys of quotas or shares, by their lower-case names; absent until they are known. */
  readonly fields?: ReadonlyMap<string, string> | undefined
}

/** Origin of a message, as the store keeps it. */
interface StoredOrigin {
  readonly sender: string
  readonly saslUsername?: string | null | undefined
  /** Client as `name[address]`. */
  readonly client?: string | null | undefined
  readonly class?: string | undefined
}

const TOKEN = 'token:'
/** Share of mail of this machine from the null sender. */
const LOCAL = 'local'

/** A key as it is counted: addresses and domains of senders in lower case. */
export const countedKey = (part: SharePart | QuotaKey, key: string): string =>
  part === 'sender' || part === 'sender_domain' ? key.toLowerCase() : key

/** One part of the origin, as it is counted; empty when the message has none. */
export function partOf(part: SharePart | QuotaKey, { sender, user, address, fields }: Origin): string {
  switch (part) {
    case 'login':
      return user === undefined || user.startsWith(TOKEN) ? '' : user
    case 'token':
      return user?.startsWith(TOKEN) === true ? user : ''
    case 'sender_domain':
      return countedKey(part, domainOf(sender))
    case 'sender':
      return countedKey(part, sender)
    case 'client':
      return address ?? LOCAL
    default:
      return fields?.get(fieldOfKey(part) ?? '') ?? ''
  }
}

/** The first part that the message has; undefined when it has none of them. */
export function shareOf(key: readonly SharePart[], origin: Origin): string | undefined {
  for (const part of key) {
    const share = partOf(part, origin)
    if (share !== '') return share
  }
  return undefined
}

/** Address of the mail of users of this machine. */
const LOCAL_ADDRESS = '127.0.0.1'

/** The header fields that name shares, and the clients whose fields count: those that the `allow` of a class names. */
export class NamedShares {
  /** Lower-case names. */
  readonly fields: ReadonlySet<string>
  readonly #clients: Clients

  constructor({ share_key: key, class: classes }: Pick<Config, 'share_key' | 'class'>) {
    this.fields = new Set(key.flatMap((part) => fieldOfKey(part) ?? []))
    this.#clients = new Clients(this.fields.size === 0 ? [] : [...classes.values()].flatMap(({ allow }) => allow), 'allow')
  }

  /** The origin with the fields of the header that count for its share. */
  known(origin: Origin, fields: ReadonlyMap<string, string>): Origin {
    const { user, address } = origin
    if (this.fields.size === 0 || !this.#clients.has({ user, address: address ?? LOCAL_ADDRESS })) return origin
    return { ...origin, fields }
  }
}

/** The origin of a stored message. */
export function originOf({ sender, saslUsername, client, class: name }: StoredOrigin): Origin {
  const address = client === null || client === undefined ? null : (/\[(.*)\]$/.exec(client)?.[1] ?? client)
  return { sender, user: saslUsername ?? undefined, address, class: name }
}
