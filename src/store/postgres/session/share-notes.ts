/** Messages that a transaction adds to the live mail of shares, or removes from it. The transaction writes one row per share before its commit. */
import { countsAs, NO_SHARE, sumsOf, type OwnShares, type ShareCount } from '../../share-counts.ts'
import type { Message, OwnerId, Placement } from '../../../mail/message.ts'
import { int8s, texts } from './arrays.ts'
import type { Statements } from './database-connection.ts'

type Counted = Pick<Message, 'size'> & { readonly share?: string | null | undefined }

export const addUsage = `
  insert into share_usage (node, share, messages, bytes)
  select $1, share, messages, bytes from unnest($2::text[], $3::bigint[], $4::bigint[]) as new (share, messages, bytes)
  on conflict (node, share) do update
    set messages = share_usage.messages + excluded.messages, bytes = share_usage.bytes + excluded.bytes`

/** Writes counts of a node, in the order of the shares, so that two sessions do not wait for each other. */
export async function writeShares(statements: Statements, node: OwnerId, counts: readonly ShareCount[]): Promise<void> {
  const sorted = counts.toSorted((a, b) => Buffer.compare(Buffer.from(a.share), Buffer.from(b.share)))
  await statements.query(addUsage, [
    node,
    texts(sorted.map(({ share }) => share)),
    int8s(sorted.map(({ messages }) => messages)),
    int8s(sorted.map(({ bytes }) => bytes)),
  ])
}

export class ShareNotes {
  readonly #own: OwnShares
  /** The counts to which the transaction belongs; its fence holds off others until its end. */
  readonly #since: number | null
  readonly #noted: ShareCount[] = []

  constructor(own: OwnShares) {
    this.#own = own
    this.#since = own.since
  }

  entered(message: Counted, placement: Placement): void {
    this.#note(message, placement, 1)
  }

  left(message: Counted, placement: Placement): void {
    this.#note(message, placement, -1)
  }

  #note({ share, size }: Counted, placement: Placement, sign: 1 | -1): void {
    if (this.#since !== null && countsAs(placement)) this.#noted.push({ share: share ?? NO_SHARE, messages: sign, bytes: sign * size })
  }

  async write(statements: Statements, node: OwnerId): Promise<void> {
    const sums = this.#sums
    if (sums.length > 0) await writeShares(statements, node, sums)
  }

  committed(): void {
    if (this.#since !== null && this.#noted.length > 0) this.#own.add(this.#since, this.#sums)
  }

  get #sums(): readonly ShareCount[] {
    return [...sumsOf(this.#noted).values()].filter(({ messages, bytes }) => messages !== 0 || bytes !== 0)
  }
}
