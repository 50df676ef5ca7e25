/** Verifies the signatures of a message (RFC 6376 §6.1, RFC 8301, RFC 8463). The caller looks up the key records. Pure. */
import { verify } from 'node:crypto'
import type { RawField } from '../mail/headers.ts'
import { BodyHash, type Canonicalization } from './body-hash.ts'
import { parseRecord, recordName } from './key-record.ts'
import { sentFields, splitContent } from './message-digest.ts'
import { isSignature, parseTags, signatureInput, signedBytes, withoutBlanks, type Algorithm } from './signature-field.ts'

interface FoundSignature {
  readonly domain: string
  readonly selector: string
  readonly algorithm: string
  /** Name of the TXT record with its key. */
  readonly record: string
  /** The reason why the signature cannot be valid, whatever its key; null when the key decides. */
  readonly refused: string | null
  readonly tags: ReadonlyMap<string, string>
  readonly field: RawField
}

/** A message with its signatures, in their order. */
interface SignedContent {
  readonly fields: readonly RawField[]
  readonly body: Uint8Array
  readonly signatures: readonly FoundSignature[]
}

const REQUIRED_TAGS = ['v', 'a', 'b', 'bh', 'd', 'h', 's']
const ALGORITHMS: ReadonlySet<string> = new Set<Algorithm>(['rsa-sha256', 'ed25519-sha256'])

/** Reads the signatures of a content whose lines end in CRLF. */
export function readSignatures(content: Uint8Array): SignedContent {
  const { header, body } = splitContent(content)
  const fields = sentFields([header], 0)
  return { fields, body, signatures: fields.filter(isSignature).map(foundSignature) }
}

function foundSignature(field: RawField): FoundSignature {
  const tags = parseTags(field.value) ?? new Map<string, string>()
  const domain = (tags.get('d') ?? '').toLowerCase()
  const selector = (tags.get('s') ?? '').toLowerCase()
  const algorithm = tags.get('a') ?? ''
  return { domain, selector, algorithm, record: recordName(selector, domain), refused: malformed(tags), tags, field }
}

function malformed(tags: ReadonlyMap<string, string>): string | null {
  const missing = REQUIRED_TAGS.find((tag) => (tags.get(tag) ?? '') === '')
  if (missing !== undefined) return `the tag ${missing}= is missing`
  if (tags.get('v') !== '1') return `unknown version v=${tags.get('v')}`
  if (!ALGORITHMS.has(tags.get('a') ?? '')) return `the algorithm ${tags.get('a')} is not supported`
  if (!namesOf(tags).some((name) => name.toLowerCase() === 'from')) return 'From is not signed'
  if (tags.has('l')) return 'it covers a part of the body only (l=)'
  return formsOf(tags) === null ? `unknown canonicalization c=${tags.get('c')}` : null
}

const namesOf = (tags: ReadonlyMap<string, string>): readonly string[] => withoutBlanks(tags.get('h') ?? '').split(':')

function formsOf(tags: ReadonlyMap<string, string>): { readonly header: Canonicalization; readonly body: Canonicalization } | null {
  const [header = 'simple', body = 'simple'] = (tags.get('c') ?? 'simple').split('/')
  return isForm(header) && isForm(body) ? { header, body } : null
}

const isForm = (text: string): text is Canonicalization => text === 'simple' || text === 'relaxed'

/** Reason why a signature does not verify with the TXT records of its name; null when it does. `now` is in seconds since 1970. */
export function signatureProblem(
  content: SignedContent,
  signature: FoundSignature,
  records: readonly string[],
  now: number,
): string | null {
  const { tags, refused, field, algorithm } = signature
  const forms = formsOf(tags)
  if (refused !== null || forms === null) return refused
  if (tags.has('x') && Number(tags.get('x')) < now) return 'it has expired (x=)'
  const [record] = records
  if (record === undefined) return 'its key is not published'
  const published = parseRecord(record)
  if ('why' in published) return published.why
  if (published.algorithm !== algorithm) return `the published key is of another type than ${algorithm}`
  const body = new BodyHash(forms.body)
  body.write(content.body)
  if (body.digest() !== withoutBlanks(tags.get('bh') ?? '')) return 'the body was changed'
  const own = { ...field, value: field.value.replace(/((?:^|;)[ \t\r\n]*b[ \t\r\n]*=)[^;]*/, '$1') }
  const input = signatureInput(published.algorithm, signedBytes(content.fields, namesOf(tags), { own, form: forms.header }))
  const isValid = verify(
    published.algorithm === 'rsa-sha256' ? 'sha256' : null,
    input,
    published.key,
    Buffer.from(withoutBlanks(tags.get('b') ?? ''), 'base64'),
  )
  return isValid ? null : 'a signed header field was changed'
}
