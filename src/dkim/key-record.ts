/** TXT records that publish keys (RFC 6376 §3.6.1, RFC 8463 §4): writing, reading, and comparison with a key. Pure. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { parseTags, withoutBlanks, type Algorithm } from './signature-field.ts'

export const recordName = (selector: string, domain: string): string => `${selector}._domainkey.${domain}`

/** Octets before the 32 octets of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410 §4). */
const ED25519_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

export function recordText(key: KeyObject): string {
  const spki = key.export({ type: 'spki', format: 'der' })
  const isRsa = key.asymmetricKeyType === 'rsa'
  const p = isRsa ? spki : spki.subarray(ED25519_PREFIX.length)
  return `v=DKIM1; k=${isRsa ? 'rsa' : 'ed25519'}; p=${p.toString('base64')}`
}

/** A record as a line of a zone file, its text in strings of at most 255 octets (RFC 1035 §3.3.14). */
export function zoneLine(name: string, text: string): string {
  const strings = text.match(/.{1,255}/g) ?? []
  return `${name}. IN TXT ( ${strings.map((part) => `"${part}"`).join(' ')} )`
}

/** A published key. `why` says that it cannot be used, and names the reason. */
type PublishedKey = { readonly key: KeyObject; readonly algorithm: Algorithm; readonly testing: boolean } | { readonly why: string }

export function parseRecord(text: string): PublishedKey {
  const tags = parseTags(text)
  if (tags === null || (tags.get('v') ?? 'DKIM1') !== 'DKIM1') return { why: 'its record is not a DKIM1 record' }
  const p = withoutBlanks(tags.get('p') ?? '')
  if (p === '') return { why: 'the key is revoked (empty p=)' }
  const services = words(tags.get('s') ?? '*')
  if (!services.includes('*') && !services.includes('email')) return { why: `its record is not for mail (s=${services.join(':')})` }
  if (tags.has('h') && !words(tags.get('h')).includes('sha256')) return { why: 'its record does not allow sha256 (h=)' }
  const testing = words(tags.get('t')).includes('y')
  try {
    switch (tags.get('k') ?? 'rsa') {
      case 'rsa':
        return { key: rsaKey(Buffer.from(p, 'base64')), algorithm: 'rsa-sha256', testing }
      case 'ed25519': {
        const spki = Buffer.concat([ED25519_PREFIX, Buffer.from(p, 'base64')])
        return { key: createPublicKey({ key: spki, type: 'spki', format: 'der' }), algorithm: 'ed25519-sha256', testing }
      }
      default:
        return { why: `its record has an unknown type of key (k=${tags.get('k')})` }
    }
  } catch {
    return { why: 'its record has a damaged key (p=)' }
  }
}

const words = (text = ''): readonly string[] => withoutBlanks(text).toLowerCase().split(':')

/** RSA keys are published as SubjectPublicKeyInfo, by some as RSAPublicKey. */
function rsaKey(der: Buffer): KeyObject {
  try {
    return createPublicKey({ key: der, type: 'spki', format: 'der' })
  } catch {
    return createPublicKey({ key: der, type: 'pkcs1', format: 'der' })
  }
}

/** Problem of the records that a selector has in DNS; null when they publish the key. */
export function recordProblem(records: readonly string[], expected: string): string | null {
  const [found, ...others] = records
  if (found === undefined) return 'no TXT record'
  if (others.length > 0) return `${records.length} TXT records, receivers use any one of them: keep one`
  const published = parseRecord(found)
  if ('why' in published) return published.why
  const own = parseRecord(expected)
  // Keys of different types are not compared: that leaves an error in OpenSSL, which the next call would report.
  if ('why' in own || published.algorithm !== own.algorithm || !published.key.equals(own.key))
    return 'the published key differs from the private key'
  return published.testing ? 'the record is marked as a test (t=y), so that receivers may ignore signatures' : null
}
