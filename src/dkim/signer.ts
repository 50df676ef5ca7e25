/**
 * Signs messages with the keys of the `[dkim."…"]` tables. The table is chosen by the domain of the only address in From, so that
 * the signature is aligned with it (RFC 7489 §3.1.1); mail without such an address or table is not signed.
 */
import { domainToASCII } from 'node:url'
import { addressesIn } from '../mail/address-list.ts'
import { domainOf, lookupKeys } from '../mail/address.ts'
import type { RawField } from '../mail/headers.ts'
import { errorMessage } from '../system/caught-error.ts'
import { SECOND, type WallTime } from '../system/clock.ts'
import type { Signing } from '../system/signing.ts'
import type { HeaderChoice } from './header-choice.ts'
import type { DkimDomain, DkimKey, DkimKeys } from './keys.ts'
import {
  isSignature,
  parseTags,
  signatureField,
  signatureInput,
  signatureWith,
  signedBytes,
  unsignedValue,
  type SignatureTags,
} from './signature-field.ts'

interface SignedMessage {
  readonly fields: readonly RawField[]
  readonly bodyHash: string
  /** Time of the signature, in seconds since 1970. */
  readonly signedAt: number
}

/** The signing domain of a message, or the reason why it has none. */
type Signatory = { readonly domain: DkimDomain } | { readonly why: 'no-table' | 'from' }

/** Time of a signature as its tag `t=` has it: wall time in seconds. */
export const timeOfSignature = (wall: WallTime): number => Math.floor(wall / SECOND)

/** A key could not sign. The mail is not accepted, or not sent, for now. */
export class SigningFailed extends Error {
  override readonly name = 'SigningFailed'
}

export class Signer {
  readonly #keys: DkimKeys
  readonly #signing: Signing
  readonly #choice: HeaderChoice

  constructor(keys: DkimKeys, signing: Signing, choice: HeaderChoice) {
    this.#keys = keys
    this.#signing = signing
    this.#choice = choice
  }

  signatory(fields: readonly RawField[]): Signatory {
    const domain = fromDomain(fields)
    if (domain === null) return { why: 'from' }
    const found = keysFor(this.#keys, domain)
    return found === undefined ? { why: 'no-table' } : { domain: found }
  }

  /** The keys of a table that sign a message: those without a signature that the message has already. */
  signingKeys(fields: readonly RawField[], { domain, keys }: DkimDomain): readonly DkimKey[] {
    const existing = new Set(fields.filter(isSignature).map(identity))
    return keys.filter(({ staged, selector }) => !staged && !existing.has(`${selector}._domainkey.${domain}`))
  }

  /** The DKIM-Signature fields of a message, RSA first. Empty when the message has them already. Rejects with SigningFailed. */
  async sign(message: SignedMessage, table: DkimDomain): Promise<string> {
    const { domain, expire } = table
    const { signedAt, bodyHash } = message
    const shared = { domain, signedAt, bodyHash, expiresAt: expire === 0 ? null : signedAt + Math.floor(expire / SECOND) }
    const names = this.#choice.names(message.fields)
    const made = this.signingKeys(message.fields, table).map((key) =>
      this.#signature(message.fields, key, { ...shared, names, algorithm: key.algorithm, selector: key.selector }),
    )
    return (await Promise.all(made)).join('')
  }

  async #signature(fields: readonly RawField[], { algorithm, privateKey, path }: DkimKey, tags: SignatureTags): Promise<string> {
    const unsigned = unsignedValue(tags)
    const bytes = signedBytes(fields, tags.names, { own: signatureWith(unsigned) })
    try {
      return signatureField(unsigned, await this.#signing(signatureInput(algorithm, bytes), privateKey))
    } catch (cause) {
      throw new SigningFailed(`cannot sign with the DKIM key ${path}: ${errorMessage(cause)}`, { cause })
    }
  }
}

/** The keys of a domain: of its own table, else of that of its longest parent domain, `.parent` before `parent`. */
export function keysFor<Table>(keys: ReadonlyMap<string, Table>, domain: string): Table | undefined {
  for (const key of lookupKeys(domain)) {
    const found = keys.get(key) ?? keys.get(key.replace(/^\./, ''))
    if (found !== undefined) return found
  }
  return undefined
}

/** The domain of the only address of the only From field, in ASCII form; null when there is none. */
function fromDomain(fields: readonly RawField[]): string | null {
  const [field, ...others] = fields.filter(({ name }) => name === 'from')
  if (field === undefined || others.length > 0) return null
  const [from, ...more] = addressesIn(Buffer.from(field.value, 'latin1').toString())
  const domain = more.length > 0 || typeof from?.address !== 'string' ? '' : domainToASCII(domainOf(from.address))
  return domain === '' ? null : domain
}

/** Name of the key record of a signature. */
function identity({ value }: RawField): string {
  const tags = parseTags(value)
  return `${tags?.get('s') ?? ''}._domainkey.${tags?.get('d') ?? ''}`.toLowerCase()
}
