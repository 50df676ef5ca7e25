/**
 * Makes X.509 certificates of any names, validity and issuer for simulated servers, with Ed25519 keys derived from a seed, so that the same
 * call makes the same key. Only what OpenSSL needs to verify a server: a subject, the dates, subject alternative names and basic constraints.
 */
import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto'
import { isIP } from 'node:net'
import { isoInstant } from '../../mail/mail-date.ts'
import type { WallTime } from '../../system/clock.ts'

export interface MadeCertificate {
  readonly cert: string
  readonly key: string
  /** DER of the certificate. */
  readonly der: Buffer
  /** DER of SubjectPublicKeyInfo. */
  readonly spki: Buffer
}

export interface CertificateTerms {
  /** Names and IP addresses. */
  readonly names?: readonly string[]
  /** Common name; `seed` when absent. */
  readonly subject?: string
  /** A public text, or random octets. */
  readonly seed: string | Uint8Array
  /** The certificate that signs; absent for a self-signed certificate. */
  readonly issuer?: MadeCertificate & { readonly subject: string }
  readonly isAuthority?: boolean
  readonly from?: WallTime
  readonly until?: WallTime
}

const length = (size: number): Buffer => {
  if (size < 0x80) return Buffer.of(size)
  return size < 0x100 ? Buffer.of(0x81, size) : Buffer.of(0x82, size >> 8, size & 0xff)
}
const tlv = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.of(tag), length(body.length), body])
}
const sequence = (...parts: readonly Uint8Array[]): Buffer => tlv(0x30, ...parts)
const oid = (...bytes: readonly number[]): Buffer => tlv(0x06, Buffer.from(bytes))
const time = (at: WallTime): Buffer => tlv(0x18, Buffer.from(`${isoInstant(at).replaceAll(/[-:T]/g, '').slice(0, 14)}Z`))

/** Validity of a certificate: 2020 to 2120. */
const BEGIN: WallTime = 1_577_836_800_000
const END: WallTime = 4_733_510_400_000

const ED25519 = sequence(oid(0x2b, 0x65, 0x70))
const COMMON_NAME = oid(0x55, 0x04, 0x03)
const BASIC_CONSTRAINTS = oid(0x55, 0x1d, 0x13)
const ALTERNATIVE_NAMES = oid(0x55, 0x1d, 0x11)
const TRUE = Buffer.of(0x01, 0x01, 0xff)

const nameOf = (subject: string): Buffer => sequence(tlv(0x31, sequence(COMMON_NAME, tlv(0x0c, Buffer.from(subject)))))

/** A general name (RFC 5280 §4.2.1.6): dNSName or iPAddress. */
const alternativeName = (name: string): Buffer => (isIP(name) === 0 ? tlv(0x82, Buffer.from(name, 'latin1')) : tlv(0x87, octetsOf(name)))

function octetsOf(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number))
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const groups = [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => '0'), ...tail]
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex')
}

function keyOf(seed: string | Uint8Array): KeyObject {
  const secret = createHash('sha256').update(seed).digest()
  const pkcs8 = sequence(Buffer.of(0x02, 0x01, 0x00), ED25519, tlv(0x04, tlv(0x04, secret)))
  return createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
}

const pem = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replaceAll(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`

export function makeCertificate(terms: CertificateTerms): MadeCertificate & { readonly subject: string } {
  const { names = [], seed, subject = typeof seed === 'string' ? seed : '', issuer, isAuthority = false } = terms
  const { from = BEGIN, until = END } = terms
  const key = keyOf(seed)
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' })
  const serial = createHash('sha256').update(spki).update(`${subject} ${names.join()} ${until}`).digest().subarray(0, 8)
  serial.writeUInt8(serial.readUInt8(0) & 0x7f || 1, 0)
  const extensions = [
    sequence(BASIC_CONSTRAINTS, TRUE, tlv(0x04, isAuthority ? sequence(TRUE) : sequence())),
    ...(names.length === 0 ? [] : [sequence(ALTERNATIVE_NAMES, tlv(0x04, sequence(...names.map(alternativeName))))]),
  ]
  const body = sequence(
    tlv(0xa0, Buffer.of(0x02, 0x01, 0x02)),
    tlv(0x02, serial),
    ED25519,
    nameOf(issuer?.subject ?? subject),
    sequence(time(from), time(until)),
    nameOf(subject),
    spki,
    tlv(0xa3, sequence(...extensions)),
  )
  const signature = sign(null, body, issuer === undefined ? key : issuer.key)
  const der = sequence(body, ED25519, tlv(0x03, Buffer.of(0), signature))
  return { cert: pem(der), key: key.export({ type: 'pkcs8', format: 'pem' }).toString(), der, spki, subject }
}
