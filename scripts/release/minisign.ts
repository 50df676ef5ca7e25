/** Signatures in the form of minisign(1): Ed25519 over the BLAKE2b digest of a file, and over its trusted comment. */
import { createHash, createPublicKey, generateKeyPairSync, randomBytes, sign, verify, type KeyObject } from 'node:crypto'

/** Bytes before the key in the DER form of an Ed25519 key (RFC 8410). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const KEY = Buffer.from('Ed')
/** Mark of a signature over a digest. */
const HASHED = Buffer.from('ED')

export interface SigningKey {
  /** The line of the public key, as in `release_key` of release/owner.json. */
  readonly publicKey: string
  readonly id: Buffer
  readonly secret: KeyObject
}

/** A key for one run, which is never written. */
export function temporaryKey(): SigningKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const id = randomBytes(8)
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(SPKI.length)
  return { publicKey: Buffer.concat([KEY, id, raw]).toString('base64'), id, secret: privateKey }
}

const digest = (content: Uint8Array): Buffer => createHash('blake2b512').update(content).digest()

/** The file of a public key. */
export const publicKeyFile = (line: string): string => `untrusted comment: public key of deferd releases\n${line}\n`

/** The text of `FILE.minisig`. The comment is signed too. */
export function signature(content: Uint8Array, comment: string, { id, secret }: SigningKey): string {
  const signed = sign(null, digest(content), secret)
  const whole = sign(null, Buffer.concat([signed, Buffer.from(comment)]), secret)
  const line = Buffer.concat([HASHED, id, signed]).toString('base64')
  return `untrusted comment: signature of a deferd release\n${line}\ntrusted comment: ${comment}\n${whole.toString('base64')}\n`
}

/** Returns the trusted comment of a signature. Throws a sentence unless it is a signature of the content by the key. */
export function verified(content: Uint8Array, signatureFile: string, publicKey: string): string {
  const [, line = '', trusted = '', whole = ''] = signatureFile.split('\n')
  const [key, parts] = [Buffer.from(publicKey, 'base64'), Buffer.from(line, 'base64')]
  if (key.length !== 42 || !key.subarray(0, 2).equals(KEY)) throw new Error(`${publicKey} is no public key of minisign(1)`)
  if (parts.length !== 74 || !parts.subarray(0, 2).equals(HASHED)) throw new Error('the signature has not the form of minisign(1)')
  if (!parts.subarray(2, 10).equals(key.subarray(2, 10))) throw new Error('the signature is by another key than the release key')
  const comment = trusted.replace(/^trusted comment: /, '')
  const signed = parts.subarray(10)
  const own = createPublicKey({ key: Buffer.concat([SPKI, key.subarray(10)]), format: 'der', type: 'spki' })
  if (!verify(null, digest(content), own, signed)) throw new Error('the signature is not of this content: the file was changed')
  if (!verify(null, Buffer.concat([signed, Buffer.from(comment)]), own, Buffer.from(whole, 'base64')))
    throw new Error('the trusted comment of the signature was changed')
  return comment
}
