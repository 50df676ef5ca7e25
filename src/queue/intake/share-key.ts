/** The share of the queue to which a message counts (share_key): whose mail it is. Pure. */
import type { SharePart } from '../../config/values/limit-terms.ts'
import { domainOf } from '../../mail/address.ts'

/** Origin of a message. */
export interface Origin {
  readonly sender: string
  /** User of the client's login, or `token:NAME`. */
  readonly user: string | undefined
  /** Address of the client; null for mail of this machine. */
  readonly address: string | null
}

const TOKEN = 'token:'
/** Share of mail of this machine from the null sender. */
const LOCAL = 'local'

function partOf(part: SharePart, { sender, user, address }: Origin): string {
  switch (part) {
    case 'login':
      return user === undefined || user.startsWith(TOKEN) ? '' : user
    case 'token':
      return user?.startsWith(TOKEN) === true ? user : ''
    case 'sender_domain':
      return domainOf(sender).toLowerCase()
    case 'client':
      return address ?? LOCAL
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
